// SPDX-License-Identifier: Apache-2.0
// Linear layers: all jobs of a call are cut into tasks of (job, outputs, rows) that run in one parallel region. What a task does
// is in linear_int8.cc and linear_bf16.cc (quantised weights) and linear_plain.cc (F32, F16 and BF16).
#include <algorithm>
#include <memory>
#include <new>

#include "kernels/cpu_backend_impl.h"
#include "kernels/linear_plain.h"
#include "kernels/linear_source.h"
#include "kernels/packed_panels.h"

namespace weir::kernels {
// Rows of a job that are multiplied in one arithmetic.
struct LinearPart {
  const LinearJob* job;
  std::int64_t row_begin, row_end;
  RowForm form;
  const LinearSource* source;  // of these rows; null: floats
  RowBlocks blocks(int threads) const { return {row_begin, row_end, job->x.cols, form, threads}; }
};

namespace {

constexpr std::int64_t kTaskWork = 48 << 10;  // multiply-adds that make a task worth its hand-over

void check_step(const InputStep& step, ConstMatrix x) {
  if (step.kind == InputStep::Kind::kNorm) return check_norm(step.norm, x.cols);
  WEIR_CHECK(!step.factor.data || (step.factor.rows == x.rows && step.factor.cols == x.cols), "factor [{}, {}] of [{}, {}]",
             step.factor.rows, step.factor.cols, x.rows, x.cols);
}

void check_job(const LinearJob& job) {
  WEIR_CHECK(job.weight != nullptr);
  const Weight& w = *job.weight;
  WEIR_CHECK(w.view.rank() == 2, "weight of rank {}", w.view.rank());
  WEIR_CHECK(w.in() == job.x.cols && w.out() == job.out.cols && job.x.rows == job.out.rows, "weight [{}, {}], x [{}, {}], out [{}, {}]",
             w.out(), w.in(), job.x.rows, job.x.cols, job.out.rows, job.out.cols);
  WEIR_CHECK(is_plain(w.view.type) || (dtype_info(w.view.type).quantized && w.layout == WeightLayout::kOutIn), "weight of type {}",
             dtype_name(w.view.type));
  WEIR_CHECK(static_cast<std::int64_t>(w.view.bytes.size()) >= w.view.rows() * w.view.bytes_per_row());
  WEIR_CHECK(job.prompt_rows >= 0 && job.prompt_rows <= job.x.rows, "{} prompt rows of {}", job.prompt_rows, job.x.rows);
  if (job.input) check_step(*job.input, job.x);
}

// Cuts the parts into tasks: emit(part, out_begin, out_end, row_begin, row_end). The cut changes no result, so it may depend on
// anything. All tasks of a row block follow each other, and a thread's share is mostly blocks of its own.
template <class Emit>
void cut(std::span<const LinearPart> parts, std::int64_t total_work, int threads, Emit emit) {
  const std::int64_t wanted = std::max(kTaskWork, total_work / (threads * 8));
  std::int64_t blocks = 0;
  for (const LinearPart& part : parts) blocks = std::max(blocks, part.blocks(threads).count);
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (const LinearPart& part : parts) {
      const RowBlocks own = part.blocks(threads);
      if (block >= own.count || own.rows == 0) continue;
      const std::int64_t row = own.begin(block), row_end = own.end(block), sharers = std::max<std::int64_t>(1, threads / own.count);
      const std::int64_t outs = part.job->out.cols, stripes = (outs + kStripeOuts - 1) / kStripeOuts;
      const std::int64_t work = std::max<std::int64_t>(part.job->x.cols, 1) * (row_end - row) * kStripeOuts;  // of a stripe
      std::int64_t each = std::max<std::int64_t>(1, wanted / work);
      if (part.form == RowForm::kBf16) each = std::max(each, fewest_outs(row_end - row, part.job->x.cols) / kStripeOuts);
      const std::int64_t pieces = std::min(stripes, ((stripes + each - 1) / each + sharers - 1) / sharers * sharers);
      for (std::int64_t p = 0; p < pieces; ++p) {
        const std::int64_t begin = stripes * p / pieces * kStripeOuts, end = stripes * (p + 1) / pieces * kStripeOuts;
        emit(part, begin, std::min(outs, end), row, row_end);
      }
    }
  }
}

bool same_input(const LinearJob& a, const LinearJob& b) {
  return a.x.data == b.x.data && a.x.rows == b.x.rows && a.x.cols == b.x.cols && a.x.stride == b.x.stride && a.input == b.input;
}

// The first of some things that `fits`, or null.
template <class T, class Fits>
T* find(T* first, std::int64_t count, Fits fits) {
  T* const found = std::find_if(first, first + count, fits);
  return found == first + count ? nullptr : found;
}

}  // namespace

// How rows of the job are multiplied: those of prompts may have an arithmetic of their own.
RowForm CpuBackend::form_of(const LinearJob& job, bool prompt) const {
  const DType type = job.weight->view.type;
  if (activations_ != Activations::kInt8) return RowForm::kFloat;
  if (is_plain(type)) return type == DType::kBF16 && table_.plain.bf16_tile ? RowForm::kBf16 : RowForm::kFloat;
  return prompt && phases_differ() ? RowForm::kBf16 : RowForm::kInt8;
}

bool CpuBackend::phases_differ() const { return activations_ == Activations::kInt8 && table_.round_panel != nullptr; }

// The jobs with their inputs' steps done, where the arithmetic is float.
std::span<const LinearJob> CpuBackend::prepare_float_inputs(std::span<const LinearJob> jobs) {
  const auto needs = [&](const LinearJob& job) { return job.input && form_of(job, false) == RowForm::kFloat; };
  if (std::none_of(jobs.begin(), jobs.end(), needs)) return jobs;
  auto* own = shared_.take<LinearJob>(static_cast<std::int64_t>(jobs.size()));
  std::uninitialized_copy(jobs.begin(), jobs.end(), own);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const LinearJob& job = jobs[i];
    if (!needs(job)) continue;
    own[i].input = nullptr;
    const LinearJob* same =
        find(jobs.data(), static_cast<std::int64_t>(i), [&](const LinearJob& other) { return needs(other) && same_input(other, job); });
    if (same) {
      own[i].x = own[same - jobs.data()].x;
      continue;
    }
    const Matrix x{shared_.take<float>(job.x.rows * job.x.cols), job.x.rows, job.x.cols};
    for_rows(x.rows, 4 * x.cols, [&](std::int64_t row) { apply_step(table_, *job.input, job.x, row, x.row(row)); });
    own[i].x = x;
  }
  return {own, jobs.size()};
}

// The source of a part's rows, or null where they are multiplied as floats: one of the first `count` if that is the same.
const LinearSource* CpuBackend::source_of(const LinearPart& part, LinearSource* sources, std::int64_t& count) {
  const RowForm form = part.form;
  if (form == RowForm::kFloat) return nullptr;
  const LinearJob& job = *part.job;
  LinearSource* source = find(sources, count, [&](const LinearSource& s) {
    return s.form == form && s.cut.first == part.row_begin && s.cut.rows == part.row_end - part.row_begin &&
           same_input({.x = s.x, .out = {}, .input = s.step}, job);
  });
  if (!source) {
    const RowBlocks rows = part.blocks(pool_.size());
    source = new (sources + count++) LinearSource{job.x, job.input, form, rows, shared_.take<RowBlock>(rows.count)};
    for (std::int64_t b = 0; b < rows.count; ++b)
      allocate_block(*source, b, inputs_[static_cast<std::size_t>(b * pool_.size() / rows.count)]);
  }
  if (form == RowForm::kInt8)
    for (std::int64_t b = 0; b < source->cut.count; ++b) expect(job.weight->view.type, source->blocks[b].quantized);
  return source;
}

// The jobs, rows of prompts apart from the others where they are multiplied in another way.
std::span<const LinearPart> CpuBackend::parts_of(std::span<const LinearJob> jobs) {
  const auto most = 2 * static_cast<std::int64_t>(jobs.size());
  auto* parts = shared_.take<LinearPart>(most);
  auto* sources = shared_.take<LinearSource>(most);
  std::int64_t count = 0, distinct = 0;
  for (Scratch& scratch : inputs_) scratch.reset();
  for (const LinearJob& job : jobs) {
    const RowForm plain = form_of(job, false), prompt = form_of(job, true);
    const std::int64_t border = plain == prompt ? job.x.rows : job.x.rows - job.prompt_rows;
    const auto add = [&](std::int64_t begin, std::int64_t end, RowForm form) {
      if (begin == end) return;
      LinearPart& part = *new (parts + count++) LinearPart{&job, begin, end, form, nullptr};
      part.source = source_of(part, sources, distinct);
    };
    add(0, border, plain);
    add(border, job.x.rows, prompt);
  }
  return {parts, static_cast<std::size_t>(count)};
}

void CpuBackend::linear(std::span<const LinearJob> jobs) {
  shared_.reset();
  std::int64_t work = 0, tasks = 0;
  for (const LinearJob& job : jobs) {
    check_job(job);
    work += job.x.rows * job.x.cols * job.out.cols;
  }
  jobs = prepare_float_inputs(jobs);
  const std::span<const LinearPart> parts = parts_of(jobs);
  cut(parts, work, pool_.size(), [&](auto...) { ++tasks; });
  struct Piece {
    const LinearPart* part;
    std::int64_t out_begin, out_end, row_begin, row_end;
  };
  auto* list = shared_.take<Piece>(tasks);
  tasks = 0;
  cut(parts, work, pool_.size(),
      [&](const LinearPart& part, std::int64_t out_begin, std::int64_t out_end, std::int64_t row_begin, std::int64_t row_end) {
        list[tasks++] = {&part, out_begin, out_end, row_begin, row_end};
      });
  for_tasks(tasks, work / std::max<std::int64_t>(tasks, 1), [&](std::int64_t i, Scratch& scratch) {
    const Piece& p = list[i];
    const LinearJob& job = *p.part->job;
    const RowBlock* block = nullptr;
    if (const LinearSource* source = p.part->source) {
      const std::int64_t index = source->cut.of(p.row_begin);
      prepare_block(table_, *source, index, pool_.size(), scratch);
      block = &source->blocks[index];
    }
    const bool rounded = block && p.part->form == RowForm::kBf16;
    if (is_plain(job.weight->view.type))
      return run_plain(table_, {&job, rounded ? &block->rounded : nullptr, p.out_begin, p.out_end, p.row_begin, p.row_end}, scratch);
    if (rounded) return run_rounded(table_, {&job, block->rounded, p.out_begin, p.out_end, p.row_begin, p.row_end}, scratch);
    run_quantized(table_, {&job, block ? &block->quantized : nullptr, p.out_begin, p.out_end, p.row_begin, p.row_end}, scratch);
  });
}

std::int64_t CpuBackend::packed_bytes(const Weight& weight) const {
  if (is_plain(weight.view.type)) return plain_packed_bytes(weight);
  return weight.layout == WeightLayout::kOutIn ? kernels::packed_bytes(weight.view) : 0;
}

std::string CpuBackend::packed_layout() const { return fmt::format("panels {}, plain {}", kPackedLayoutVersion, kPlainLayoutVersion); }

// Outputs that are packed together.
std::int64_t CpuBackend::pack_outs(const Weight& weight) const { return is_plain(weight.view.type) ? kPanelOuts : kStripeOuts; }

// Pieces of `pack_outs`, which for_each(count, pack) goes through.
template <class ForEach>
void CpuBackend::pack_pieces(const Weight& weight, std::span<std::byte> out, ForEach for_each) const {
  const bool plain = is_plain(weight.view.type);
  const std::int64_t outs = pack_outs(weight), pieces = (weight.out() + outs - 1) / outs;
  WEIR_CHECK(static_cast<std::int64_t>(out.size()) == packed_bytes(weight), "{} bytes for {} pieces", out.size(), pieces);
  const std::int64_t bytes = static_cast<std::int64_t>(out.size()) / std::max<std::int64_t>(pieces, 1);
  for_each(pieces, [&](std::int64_t i) {
    if (plain) return pack_plain_panel(table_, weight, i, out.data() + i * bytes);
    pack_stripe(weight.view, i * kStripeOuts, out.data() + i * bytes);
  });
}

void CpuBackend::pack(const Weight& weight, std::span<std::byte> out) {
  pack_pieces(weight, out, [&](std::int64_t pieces, auto pack_piece) {
    for_tasks(pieces, weight.in() * pack_outs(weight) * 64, [&](std::int64_t i, Scratch&) { pack_piece(i); });
  });
}

void CpuBackend::pack_alone(const Weight& weight, std::span<std::byte> out) const {
  pack_pieces(weight, out, [](std::int64_t pieces, auto pack_piece) {
    for (std::int64_t i = 0; i < pieces; ++i) pack_piece(i);
  });
}

void CpuBackend::embed(const Weight& table, std::span<const TokenId> ids, float scale, Matrix out) {
  WEIR_CHECK(table.layout == WeightLayout::kOutIn && table.view.rank() == 2 && table.in() == out.cols, "table {}",
             shape_string(table.view.shape));
  WEIR_CHECK(static_cast<std::int64_t>(ids.size()) == out.rows);
  const std::int64_t stride = table.view.bytes_per_row();
  for_rows(out.rows, out.cols, [&](std::int64_t row) {
    const TokenId id = ids[static_cast<std::size_t>(row)];
    WEIR_CHECK(id >= 0 && id < table.out(), "token {} of {}", id, table.out());
    table_.widen(table.view.type, table.view.bytes.data() + id * stride, out.cols, out.row(row));
    if (scale != 1.0f) table_.scale(scale, 0.0f, out.cols, out.row(row));
  });
}

}  // namespace weir::kernels
