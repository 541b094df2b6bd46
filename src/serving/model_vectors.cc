// SPDX-License-Identifier: Apache-2.0
// A model's vectors and scores. What waits together runs together: a pass over the rows of many short texts costs little more than over
// those of one, and no text's vector depends on its neighbours.
#include <algorithm>

#include "serving/model_host.h"

namespace weir::serving {
namespace {

constexpr std::int64_t kVectorRows = 512;   // of one pass between the steps of an engine: about as much as a step of it
constexpr std::int64_t kSharedRows = 1024;  // of requests that run together, by estimate: who comes first waits no longer than that
constexpr Duration kVectorPatience = std::chrono::seconds(60);  // for an engine's step to end, where the request has no limit of its own

using VectorWork = ModelHost::VectorWork;

// About how many rows of a pass an input takes, before it is encoded.
std::int64_t rows_of(const engine::TextInput& input) {
  const auto* ids = std::get_if<std::vector<TokenId>>(&input);
  const auto* text = std::get_if<std::string>(&input);
  return ids ? static_cast<std::int64_t>(ids->size()) : text ? static_cast<std::int64_t>(text->size() / 3 + 2) : kVectorRows;
}

std::int64_t rows_of(const VectorWork& work) {
  std::int64_t rows = 0;
  for (const engine::TextInput& input : work.inputs) rows += rows_of(input);
  return rows;
}

bool alike(const VectorWork& a, const VectorWork& b) {
  return a.dimensions == b.dimensions && a.normalize == b.normalize && a.prompt_name == b.prompt_name && a.max_tokens == b.max_tokens &&
         a.cut == b.cut;
}

}  // namespace

Status ModelHost::with_model(std::function<void()> work, TimePoint deadline) const {
  if (engine_ != nullptr) {
    const Duration left = deadline == TimePoint::max() ? kVectorPatience : deadline - steady_clock().now();
    return engine_->run_between_steps(std::move(work), std::min(left, kVectorPatience));
  }
  if (service_) return fail(ErrorCode::kUnsupported, "{} runs elsewhere and gives no vectors", spec_.name);
  work();
  return {};
}

Result<engine::Embedder*> ModelHost::embedder() {
  if (!embedder_) {
    engine::EmbedderOptions options;
    if (!spec_.pooling.empty()) {
      options.pooling = model::pooling_by_name(spec_.pooling);
      if (!options.pooling) return fail(ErrorCode::kInvalidArgument, "{}: no pooling is called \"{}\"", spec_.name, spec_.pooling);
    }
    WEIR_ASSIGN(embedder_, engine::Embedder::create(*loaded_, options));
  }
  return &*embedder_;
}

Result<engine::Reranker*> ModelHost::reranker() {
  if (!reranker_) {
    const engine::RerankMethod method = spec_.rerank_method == "head"        ? engine::RerankMethod::kHead
                                        : spec_.rerank_method == "yes-no"    ? engine::RerankMethod::kYesNo
                                        : spec_.rerank_method == "embedding" ? engine::RerankMethod::kEmbedding
                                                                             : engine::RerankMethod::kAuto;
    WEIR_ASSIGN(reranker_, engine::Reranker::create(*loaded_, method));
  }
  return &*reranker_;
}

Result<std::int64_t> ModelHost::vector_size() const {
  WEIR_ASSIGN(const engine::PoolingSpec spec, engine::read_pooling_spec(*loaded_));
  return spec.size;
}

bool ModelHost::embed(VectorWork work) {
  const std::lock_guard lock(vectors_mutex_);
  vectors_.push_back(std::move(work));
  if (worker_->post([this] { serve_vectors(); })) return true;
  vectors_.pop_back();
  return false;
}

// The first that waits and those like it, as far as they fit. One that nobody waits for any longer is dropped.
std::vector<VectorWork> ModelHost::take_vectors() {
  std::vector<VectorWork> taken;
  std::deque<VectorWork> dropped;  // outside the lock
  const std::lock_guard lock(vectors_mutex_);
  std::int64_t rows = 0;
  for (auto at = vectors_.begin(); at != vectors_.end();) {
    if (at->wanted && !at->wanted()) {
      dropped.push_back(std::move(*at));
      at = vectors_.erase(at);
      continue;
    }
    const std::int64_t more = rows_of(*at);
    if (!taken.empty() && (rows + more > kSharedRows || !alike(taken.front(), *at))) {
      ++at;
      continue;
    }
    rows += more;
    taken.push_back(std::move(*at));
    at = vectors_.erase(at);
  }
  return taken;
}

void ModelHost::serve_vectors() {
  std::vector<VectorWork> works = take_vectors();
  if (works.empty()) return;  // an earlier call has taken it along
  if (works.size() == 1) {
    ++vector_batches_;
    return works.front().done(run(works.front()));
  }
  serve_together(std::move(works));
}

void ModelHost::serve_together(std::vector<VectorWork> works) {
  VectorWork all = works.front();
  all.done = {};
  for (std::size_t i = 1; i < works.size(); ++i) {
    all.inputs.insert(all.inputs.end(), works[i].inputs.begin(), works[i].inputs.end());
    all.deadline = std::max(all.deadline, works[i].deadline);
  }
  ++vector_batches_;
  auto vectors = run(all);
  if (!vectors) {  // it may be the fault of one: each alone, with an error that is its own
    for (VectorWork& work : works) {
      ++vector_batches_;
      work.done(run(work));
    }
    return;
  }
  auto next = std::make_move_iterator(vectors->begin());
  for (VectorWork& work : works) {
    const auto end = next + static_cast<std::ptrdiff_t>(work.inputs.size());
    work.done(std::vector<engine::Embedding>(next, end));
    next = end;
  }
}

bool ModelHost::rank(RankWork work) {
  auto shared = std::make_shared<RankWork>(std::move(work));
  return worker_->post([this, shared] {
    if (!shared->wanted || shared->wanted()) shared->done(run(*shared));
  });
}

// Beside an engine in pieces, so that its streams go on in between; a text's vector is the same in any company.
Result<std::vector<engine::Embedding>> ModelHost::run(const VectorWork& work) {
  std::vector<engine::Embedding> all;
  for (std::size_t done = 0; done < work.inputs.size();) {
    std::size_t end = engine_ == nullptr ? work.inputs.size() : done + 1;
    for (std::int64_t rows = rows_of(work.inputs[done]); end < work.inputs.size(); ++end) {
      rows += rows_of(work.inputs[end]);
      if (rows > kVectorRows) break;
    }
    WEIR_ASSIGN(auto vectors, run_part(work, done, end));
    std::ranges::move(vectors, std::back_inserter(all));
    done = end;
  }
  return all;
}

Result<std::vector<engine::Embedding>> ModelHost::run_part(const VectorWork& work, std::size_t first, std::size_t end) {
  struct Part {
    VectorWork work;
    std::size_t first;
    Result<std::vector<engine::Embedding>> vectors = fail(ErrorCode::kInternal, "no vectors were made");
  };
  // It owns what it uses: who waits may leave before it ends.
  auto part = std::make_shared<Part>();
  part->first = first;
  part->work = {
      .inputs = {work.inputs.begin() + static_cast<std::ptrdiff_t>(first), work.inputs.begin() + static_cast<std::ptrdiff_t>(end)},
      .dimensions = work.dimensions,
      .normalize = work.normalize,
      .prompt_name = work.prompt_name,
      .max_tokens = work.max_tokens,
      .cut = work.cut};
  WEIR_TRY(with_model(
      [this, part] {
        auto made = embedder();
        if (!made) {
          part->vectors = std::unexpected(std::move(made).error());
          return;
        }
        engine::EmbedRequest request{.inputs = part->work.inputs};
        request.first_number = part->first;
        request.dimensions = part->work.dimensions;
        request.normalize = part->work.normalize;
        request.prompt_name = part->work.prompt_name;
        request.max_tokens = part->work.max_tokens;
        request.cut = part->work.cut;
        part->vectors = (*made)->embed(request);
      },
      work.deadline));
  return std::move(part->vectors);
}

Result<std::vector<engine::RankedDocument>> ModelHost::run(const RankWork& work) {
  struct Ranking {
    RankWork work;
    Result<std::vector<engine::RankedDocument>> ranked = fail(ErrorCode::kInternal, "nothing was ranked");
  };
  auto ranking = std::make_shared<Ranking>();
  ranking->work = work;
  ranking->work.done = {};
  WEIR_TRY(with_model(
      [this, ranking] {
        auto made = reranker();
        if (!made) {
          ranking->ranked = std::unexpected(std::move(made).error());
          return;
        }
        const RankWork& wanted = ranking->work;
        engine::RerankRequest request{.query = wanted.query, .documents = wanted.documents};
        request.top_n = wanted.top_n;
        request.cut = wanted.cut;
        request.max_tokens = wanted.max_tokens;
        request.instruction = wanted.instruction;
        ranking->ranked = (*made)->rank(request);
      },
      work.deadline));
  return std::move(ranking->ranked);
}

}  // namespace weir::serving
