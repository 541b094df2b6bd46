// SPDX-License-Identifier: Apache-2.0
// Linear layers: all jobs of a call are cut into tasks of (job, outputs, rows) that run in one parallel region. What a task does
// is in linear_int8.cc (quantised weights) and linear_plain.cc (F32, F16 and BF16).
#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <new>
#include <thread>

#include "kernels/cpu_backend_impl.h"
#include "kernels/linear_int8.h"
#include "kernels/linear_plain.h"
#include "kernels/packed_panels.h"

namespace weir::kernels {
namespace {

constexpr std::int64_t kMostBlockRows = 256;  // rows that share one expansion of a panel
constexpr std::int64_t kFewestBlockRows = 8;  // fewer are not worth reading all weights for them alone (linear/Q4_1, 8 to 32 rows)

// Rows in blocks of about the same size: with enough rows one or several for each thread, the same ones in every call, so that what
// belongs to a row stays in the caches of one core from layer to layer. A line that travels between cores costs as much as hundreds
// of multiply-adds.
struct RowBlocks {
  RowBlocks(std::int64_t all_rows, int threads) : rows(all_rows), count((all_rows + kMostBlockRows - 1) / kMostBlockRows) {
    count = (count + threads - 1) / threads * threads;
    count = std::max<std::int64_t>(1, std::min(count, rows / kFewestBlockRows));
  }
  std::int64_t begin(std::int64_t block) const { return rows * block / count; }
  std::int64_t end(std::int64_t block) const { return begin(block + 1); }
  std::int64_t of(std::int64_t row) const { return ((row + 1) * count - 1) / rows; }
  std::int64_t rows, count;
};

}  // namespace

// Rows of a source on their way to int8. Threads that want to multiply them quantise some until none is left.
struct alignas(64) RowBlock {
  QuantizedInput quantized;
  alignas(64) std::atomic<std::int64_t> next{0};  // rows
  std::atomic<std::int64_t> left{0};
  std::atomic<bool> ready{false};
};

// A matrix of activations that several jobs may share.
struct LinearSource {
  ConstMatrix x;
  const InputStep* step;
  RowBlocks cut;
  RowBlock* blocks;
};

namespace {

constexpr std::int64_t kTaskWork = 48 << 10;    // multiply-adds that make a task worth its hand-over
constexpr int kLooks = 1000;                    // at what another thread does before the processor is offered to it
constexpr std::int64_t kFewestRoundedRows = 8;  // that are rounded to bf16 before the tasks, not by each of them
constexpr std::int64_t kQuantizeRows = 8;       // rows that a thread quantises before it asks for more, at most

// Row `row` of x after its step, written to `out` (which may be x's own row for a norm).
void apply_step(const KernelTable& table, const InputStep& step, ConstMatrix x, std::int64_t row, float* out) {
  if (step.kind == InputStep::Kind::kNorm) return norm_row(table, step.norm, x.row(row), x.cols, out);
  table.activate(step.activation, x.row(row), step.factor.data ? step.factor.row(row) : nullptr, x.cols, out);
}

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
  if (job.input) check_step(*job.input, job.x);
}

// Cuts the jobs into tasks: emit(job, out_begin, out_end, row_begin, row_end). The cut changes no result, so it may depend on
// anything. All tasks of a row block follow each other, and a thread's share is mostly blocks of its own.
template <class Emit>
void cut(std::span<const LinearJob> jobs, std::int64_t total_work, int threads, Emit emit) {
  const std::int64_t wanted = std::max(kTaskWork, total_work / (threads * 8));
  std::int64_t blocks = 0;
  for (const LinearJob& job : jobs) blocks = std::max(blocks, RowBlocks(job.x.rows, threads).count);
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const LinearJob& job = jobs[i];
      const RowBlocks own(job.x.rows, threads);
      if (block >= own.count || job.x.rows == 0) continue;
      const std::int64_t row = own.begin(block), row_end = own.end(block), sharers = std::max<std::int64_t>(1, threads / own.count);
      const std::int64_t work = std::max<std::int64_t>(job.x.cols, 1) * (row_end - row) * kStripeOuts;  // of a stripe
      const std::int64_t stripes = (job.out.cols + kStripeOuts - 1) / kStripeOuts, each = std::max<std::int64_t>(1, wanted / work);
      const std::int64_t pieces = std::min(stripes, ((stripes + each - 1) / each + sharers - 1) / sharers * sharers);
      for (std::int64_t p = 0; p < pieces; ++p) {
        const std::int64_t begin = stripes * p / pieces * kStripeOuts, end = stripes * (p + 1) / pieces * kStripeOuts;
        emit(i, begin, std::min(job.out.cols, end), row, row_end);
      }
    }
  }
}

void quantize_row_of(const KernelTable& table, const LinearSource& s, std::int64_t row, std::int64_t in_block, const QuantizedInput& out,
                     Scratch& scratch) {
  const float* x = s.x.row(row);
  if (s.step) {
    scratch.reset();
    float* prepared = scratch.take<float>(s.x.cols);
    apply_step(table, *s.step, s.x, row, prepared);
    x = prepared;
  }
  quantize_input_row(table, x, in_block, out);
}

// Returns when the block is quantised: by this thread, unless others are at it.
void quantize_block(const KernelTable& table, const LinearSource& s, std::int64_t index, int threads, Scratch& scratch) {
  RowBlock& block = s.blocks[index];
  if (block.ready.load(std::memory_order_acquire)) return;
  const std::int64_t begin = s.cut.begin(index), rows = s.cut.end(index) - begin;
  const std::int64_t together = std::clamp<std::int64_t>(rows / threads, 1, kQuantizeRows);
  for (std::int64_t at; (at = block.next.fetch_add(together, std::memory_order_relaxed)) < rows;) {
    const std::int64_t end = std::min(rows, at + together);
    for (std::int64_t row = at; row < end; ++row) quantize_row_of(table, s, begin + row, row, block.quantized, scratch);
    if (block.left.fetch_sub(end - at, std::memory_order_acq_rel) > end - at) continue;
    list_residuals(block.quantized, rows);
    return block.ready.store(true, std::memory_order_release);
  }
  for (int look = 0; !block.ready.load(std::memory_order_acquire); ++look)
    if (look > kLooks) std::this_thread::yield();
}

bool same_input(ConstMatrix a, const InputStep* a_step, const LinearJob& b) {
  return a.data == b.x.data && a.rows == b.x.rows && a.cols == b.x.cols && a.stride == b.x.stride && a_step == b.input;
}

}  // namespace

bool CpuBackend::quantizes(const LinearJob& job) const { return activations_ == Activations::kInt8 && !is_plain(job.weight->view.type); }

// The jobs with their inputs' steps done, where the arithmetic is float.
std::span<const LinearJob> CpuBackend::prepare_float_inputs(std::span<const LinearJob> jobs) {
  const auto needs = [&](const LinearJob& job) { return job.input && !quantizes(job); };
  if (std::none_of(jobs.begin(), jobs.end(), needs)) return jobs;
  auto* own = shared_.take<LinearJob>(static_cast<std::int64_t>(jobs.size()));
  std::uninitialized_copy(jobs.begin(), jobs.end(), own);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const LinearJob& job = jobs[i];
    if (!needs(job)) continue;
    const auto same = std::find_if(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const LinearJob& other) { return needs(other) && same_input(other.x, other.input, job); });
    own[i].input = nullptr;
    if (const std::ptrdiff_t at = same - jobs.begin(); at < static_cast<std::ptrdiff_t>(i)) {
      own[i].x = own[at].x;
      continue;
    }
    const Matrix x{shared_.take<float>(job.x.rows * job.x.cols), job.x.rows, job.x.cols};
    for_rows(x.rows, 4 * x.cols, [&](std::int64_t row) { apply_step(table_, *job.input, job.x, row, x.row(row)); });
    own[i].x = x;
  }
  return {own, jobs.size()};
}

// Room for a source's rows as int8: each block's in memory that only the threads of that block write.
LinearSource CpuBackend::source_of(const LinearJob& job) {
  const RowBlocks cut(job.x.rows, pool_.size());
  auto* blocks = shared_.take<RowBlock>(cut.count);
  for (std::int64_t i = 0; i < cut.count; ++i) {
    const std::int64_t rows = cut.end(i) - cut.begin(i);
    RowBlock& block = *new (blocks + i) RowBlock;
    block.quantized = allocate_quantized(rows, job.x.cols, inputs_[static_cast<std::size_t>(i * pool_.size() / cut.count)]);
    block.left.store(rows, std::memory_order_relaxed);
  }
  return {job.x, job.input, cut, blocks};
}

// For each job its input as int8 is to be, or null where the arithmetic is float.
const LinearSource** CpuBackend::quantized_inputs(std::span<const LinearJob> jobs) {
  const auto count = static_cast<std::int64_t>(jobs.size());
  const auto** of_job = shared_.take<const LinearSource*>(count);
  auto* sources = shared_.take<LinearSource>(count);
  std::int64_t distinct = 0;
  for (Scratch& scratch : inputs_) scratch.reset();
  for (std::int64_t i = 0; i < count; ++i) {
    const LinearJob& job = jobs[static_cast<std::size_t>(i)];
    of_job[i] = nullptr;
    if (!quantizes(job)) continue;
    std::int64_t at = distinct;
    while (at > 0 && !same_input(sources[at - 1].x, sources[at - 1].step, job)) --at;
    if (at == 0) {
      new (sources + distinct) LinearSource(source_of(job));
      at = ++distinct;
    }
    for (std::int64_t b = 0; b < sources[at - 1].cut.count; ++b) expect(job.weight->view.type, sources[at - 1].blocks[b].quantized);
    of_job[i] = &sources[at - 1];
  }
  return of_job;
}

// For each job its input rounded to bf16, all rows once for all tasks, or null where that is not wanted or the rows are few: tasks
// then round theirs, which costs less than another round of all threads.
const RoundedRows** CpuBackend::rounded_inputs(std::span<const LinearJob> jobs) {
  const auto count = static_cast<std::int64_t>(jobs.size());
  const auto** of_job = shared_.take<const RoundedRows*>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const LinearJob& job = jobs[static_cast<std::size_t>(i)];
    of_job[i] = nullptr;
    if (job.x.rows < kFewestRoundedRows || !rounds_inputs(table_, activations_, job.weight->view.type)) continue;
    for (std::int64_t other = 0; other < i && !of_job[i]; ++other)
      if (of_job[other] && same_input(jobs[static_cast<std::size_t>(other)].x, nullptr, job)) of_job[i] = of_job[other];
    if (of_job[i]) continue;
    const auto* rounded = new (shared_.take<RoundedRows>(1)) RoundedRows(allocate_rounded(job.x.rows, job.x.cols, shared_));
    for_rows(job.x.rows, job.x.cols, [&](std::int64_t row) { round_input_row(table_, job.x, row, *rounded); });
    of_job[i] = rounded;
  }
  return of_job;
}

void CpuBackend::linear(std::span<const LinearJob> jobs) {
  shared_.reset();
  std::int64_t work = 0, tasks = 0;
  for (const LinearJob& job : jobs) {
    check_job(job);
    work += job.x.rows * job.x.cols * job.out.cols;
  }
  jobs = prepare_float_inputs(jobs);
  const LinearSource** sources = quantized_inputs(jobs);
  const RoundedRows** rounded = rounded_inputs(jobs);
  cut(jobs, work, pool_.size(), [&](auto...) { ++tasks; });
  struct Piece {
    std::size_t job;
    std::int64_t out_begin, out_end, row_begin, row_end;
  };
  auto* list = shared_.take<Piece>(tasks);
  tasks = 0;
  cut(jobs, work, pool_.size(),
      [&](std::size_t i, std::int64_t out_begin, std::int64_t out_end, std::int64_t row_begin, std::int64_t row_end) {
        list[tasks++] = {i, out_begin, out_end, row_begin, row_end};
      });
  for_tasks(tasks, work / std::max<std::int64_t>(tasks, 1), [&](std::int64_t i, Scratch& scratch) {
    const Piece& p = list[i];
    const LinearJob& job = jobs[p.job];
    if (is_plain(job.weight->view.type))
      return run_plain(table_, activations_, {&job, rounded[p.job], p.out_begin, p.out_end, p.row_begin, p.row_end}, scratch);
    QuantizedTask task{&job, nullptr, p.out_begin, p.out_end, p.row_begin, p.row_end};
    if (const LinearSource* source = sources[p.job]) {
      const std::int64_t block = source->cut.of(p.row_begin);
      quantize_block(table_, *source, block, pool_.size(), scratch);
      scratch.reset();
      task.input = &source->blocks[block].quantized;
    }
    run_quantized(table_, task, scratch);
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
