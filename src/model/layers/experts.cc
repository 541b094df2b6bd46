// SPDX-License-Identifier: Apache-2.0
// Mixture of experts. The rows are regrouped so that each expert sees its rows next to one another, all experts' products
// run in one call, and each row adds up its own experts in the order of its own top-k: what else is in the batch decides
// where a row lies meanwhile, never what comes out.
#include <algorithm>

#include "model/layers/layers.h"

namespace weir::model {

namespace {

// Row r's j-th choice is entry r·top_k + j; it is computed at place[entry] of the regrouped rows.
struct Grouping {
  std::span<std::int32_t> place;   // of each entry
  std::span<std::int32_t> source;  // the row that lies at a place
  std::span<std::int32_t> begin;   // places of expert e: [begin[e], begin[e + 1])
};

Grouping group_by_expert(Arena& arena, std::span<const std::int32_t> ids, std::int32_t top_k, std::int32_t experts) {
  Grouping g{arena.array<std::int32_t>(ids.size()), arena.array<std::int32_t>(ids.size()),
             arena.array<std::int32_t>(static_cast<std::size_t>(experts) + 1)};
  for (std::int32_t id : ids) ++g.begin[static_cast<std::size_t>(id) + 1];
  for (std::size_t e = 1; e < g.begin.size(); ++e) g.begin[e] += g.begin[e - 1];
  std::span<std::int32_t> next = arena.array<std::int32_t>(static_cast<std::size_t>(experts));
  std::ranges::copy(g.begin.first(next.size()), next.begin());
  for (std::size_t entry = 0; entry < ids.size(); ++entry) {
    const std::int32_t place = next[static_cast<std::size_t>(ids[entry])]++;
    g.place[entry] = place;
    g.source[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(entry) / top_k;
  }
  return g;
}

// Which rows of the experts' jobs take an adapter. Places of an expert follow the order of rows, in which those of an adapter stand
// next to one another.
class AdaptedParts {
 public:
  AdaptedParts(const Pass& pass, const Grouping& groups)
      : pass_(pass), groups_(groups), parts_(pass.arena.array<AdaptedPart>(pass.adapted.empty() ? 0 : 2 * groups.source.size())) {}

  // Jobs [first, first + count) read the places [begin, begin + rows).
  void add(std::size_t first, std::size_t count, std::int64_t begin, std::int64_t rows) {
    std::int64_t done = 0;
    for (const AdaptedRows& run : pass_.adapted) {
      const auto row_at = [&](std::int64_t i) { return groups_.source[static_cast<std::size_t>(begin + i)]; };
      while (done < rows && row_at(done) < run.begin) ++done;
      const std::int64_t start = done;
      while (done < rows && row_at(done) < run.begin + run.count) ++done;
      if (done == start) continue;
      for (std::size_t j = 0; j < count; ++j) parts_[used_++] = {first + j, {run.adapter, start, done - start}};
    }
  }
  std::span<const AdaptedPart> taken() const { return parts_.first(used_); }
  void clear() { used_ = 0; }

 private:
  const Pass& pass_;
  const Grouping& groups_;
  std::span<AdaptedPart> parts_;
  std::size_t used_ = 0;
};

// How many of the places [begin, end), which lie in the order of rows, are rows of prompts.
std::int64_t prompt_places(const Pass& pass, const Grouping& groups, std::int32_t begin, std::int32_t end) {
  const auto places = groups.source.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  return places.end() - std::ranges::lower_bound(places, pass.rows - pass.prompt_rows);
}

// Each place's expert applied to x (rows at their places).
Matrix apply_experts(const Pass& pass, const ExpertWeights& w, const Grouping& groups, ConstMatrix x) {
  const std::size_t experts = w.experts.size();
  const GateUp buffers = gate_up_buffers(pass, w.experts.front(), x.rows);
  std::span<LinearJob> jobs = pass.arena.array<LinearJob>(2 * experts);
  AdaptedParts parts(pass, groups);
  std::size_t count = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    const std::int32_t begin = groups.begin[e], rows = groups.begin[e + 1] - begin;
    if (rows == 0) continue;
    const std::size_t added = gate_up_jobs(x.row_range(begin, rows), w.experts[e], buffers, begin, jobs.subspan(count));
    for (LinearJob& job : jobs.subspan(count, added)) job.prompt_rows = prompt_places(pass, groups, begin, begin + rows);
    parts.add(count, added, begin, rows);
    count += added;
  }
  linear_parts(pass, jobs.first(count), parts.taken());
  const Matrix inner = gate_up_product(pass, pass.traits.experts.gate_up, buffers);

  const Matrix out = pass.arena.matrix(x.rows, pass.traits.hidden);
  count = 0;
  parts.clear();
  for (std::size_t e = 0; e < experts; ++e) {
    const std::int32_t begin = groups.begin[e], rows = groups.begin[e + 1] - begin;
    if (rows == 0) continue;
    parts.add(count, 1, begin, rows);
    jobs[count] = job(inner.row_range(begin, rows), w.experts[e].down, out.row_range(begin, rows));
    jobs[count++].prompt_rows = prompt_places(pass, groups, begin, begin + rows);
  }
  linear_parts(pass, jobs.first(count), parts.taken());
  return out;
}

void add_shared_expert(const Pass& pass, const ExpertWeights& w, ConstMatrix x, Matrix out) {
  const GateUp buffers = gate_up_buffers(pass, w.shared, x.rows);
  LinearJob jobs[2];
  linear(pass, {jobs, gate_up_jobs(x, w.shared, buffers, 0, jobs)});
  const Matrix inner = gate_up_product(pass, pass.traits.ffn.gate_up, buffers);
  if (!w.shared_gate) return linear(pass, inner, w.shared.down, out, true);

  const Matrix gate = pass.arena.matrix(x.rows, 1), shared = pass.arena.matrix(x.rows, out.cols);
  const LinearJob down_and_gate[] = {job(inner, w.shared.down, shared), job(x, w.shared_gate, gate)};
  linear(pass, down_and_gate);
  pass.backend.activate(Activation::kSigmoid, gate, gate);
  pass.backend.multiply(gate, shared);
  pass.backend.add(shared, 1, out);
}

}  // namespace

void feed_forward_experts(const Pass& pass, const Layer& layer, ConstMatrix x, Target target) {
  const ExpertTraits& t = pass.traits.experts;
  const ExpertWeights& w = layer.weights.experts;
  kernels::RouterParams router = t.router;
  router.correction = data_or_null(w.router_correction);
  const auto entries = static_cast<std::size_t>(x.rows * router.top_k);

  const Matrix logits = pass.arena.matrix(x.rows, t.experts);
  linear(pass, x, w.router, logits);
  const std::span<std::int32_t> ids = pass.arena.array<std::int32_t>(entries);
  const std::span<float> weights = pass.arena.array<float>(entries);
  pass.backend.route(logits, router, ids, weights);

  const Grouping groups = group_by_expert(pass.arena, ids, router.top_k, t.experts);
  const Matrix grouped = pass.arena.matrix(static_cast<std::int64_t>(entries), x.cols);
  pass.backend.gather_rows(x, groups.source, grouped);
  if (t.weigh_input) {
    const Matrix factors = pass.arena.matrix(grouped.rows, 1);
    for (std::size_t entry = 0; entry < entries; ++entry) *factors.row(groups.place[entry]) = weights[entry];
    pass.backend.multiply(factors, grouped);
    std::ranges::fill(weights, 1.0f);
  }
  const Matrix outputs = apply_experts(pass, w, groups, grouped);
  pass.backend.combine_rows(outputs, groups.place, weights, router.top_k, target.accumulate, target.out);
  if (w.shared.down) add_shared_expert(pass, w, x, target.out);
}

}  // namespace weir::model
