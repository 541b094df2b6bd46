// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_source.h"

#include <algorithm>
#include <new>
#include <thread>

#include "kernels/cpu_backend_impl.h"

namespace weir::kernels {
namespace {

constexpr std::int64_t kMostBlockRows = 256;  // rows that share one expansion of a panel
// In bf16 products are so fast that expanding counts: a block of a thread's own repays it from so many rows on, and from a twelfth of the
// inputs (docs/performance.md). Else threads share blocks, and each other's activations.
constexpr std::int64_t kFewestRoundedRows = 128;
constexpr std::int64_t kInputsOfRow = 12;
constexpr std::int64_t kFewestBlockRows = 32;  // fewer are not worth reading all weights for them alone: docs/performance.md
constexpr std::int64_t kPreparedRows = 8;      // rows that a thread prepares before it asks for more, at most
constexpr int kLooks = 1000;                   // at what another thread does before the processor is offered to it

void prepare_row(const KernelTable& table, const LinearSource& s, std::int64_t row, std::int64_t in_block, const RowBlock& out,
                 Scratch& scratch) {
  const float* x = s.x.row(row);
  if (s.step) {
    scratch.reset();
    float* prepared = scratch.take<float>(s.x.cols);
    apply_step(table, *s.step, s.x, row, prepared);
    x = prepared;
  }
  if (s.form == RowForm::kInt8) return quantize_input_row(table, x, in_block, out.quantized);
  round_input_row(table, x, s.x.cols, in_block, out.rounded);
}

}  // namespace

RowBlocks::RowBlocks(std::int64_t begin, std::int64_t end, std::int64_t inputs, RowForm form, int threads)
    : first(begin), rows(end - begin), count(1) {
  if (form == RowForm::kBf16) {
    const std::int64_t own = rows / std::max(kFewestRoundedRows, inputs / kInputsOfRow);
    count = std::max<std::int64_t>({1, (rows + kMostBlockRows - 1) / kMostBlockRows, std::min<std::int64_t>(own, threads)});
    return;
  }
  count = (rows + kMostBlockRows - 1) / kMostBlockRows;
  count = (count + threads - 1) / threads * threads;
  count = std::max<std::int64_t>(1, std::min(count, rows / kFewestBlockRows));
}

void apply_step(const KernelTable& table, const InputStep& step, ConstMatrix x, std::int64_t row, float* out) {
  if (step.kind == InputStep::Kind::kNorm) return norm_row(table, step.norm, x.row(row), x.cols, out);
  table.activate(step.activation, x.row(row), step.factor.data ? step.factor.row(row) : nullptr, x.cols, out);
}

void allocate_block(LinearSource& source, std::int64_t index, Scratch& scratch) {
  const std::int64_t rows = source.cut.end(index) - source.cut.begin(index);
  RowBlock& block = *new (source.blocks + index) RowBlock;
  if (source.form == RowForm::kInt8) block.quantized = allocate_quantized(rows, source.x.cols, scratch);
  if (source.form == RowForm::kBf16) block.rounded = allocate_rounded(rows, source.x.cols, scratch);
  block.left.store(rows, std::memory_order_relaxed);
}

void prepare_block(const KernelTable& table, const LinearSource& source, std::int64_t index, int threads, Scratch& scratch) {
  RowBlock& block = source.blocks[index];
  if (block.ready.load(std::memory_order_acquire)) return;
  const std::int64_t begin = source.cut.begin(index), rows = source.cut.end(index) - begin;
  const std::int64_t together = std::clamp<std::int64_t>(rows / threads, 1, kPreparedRows);
  for (std::int64_t at; (at = block.next.fetch_add(together, std::memory_order_relaxed)) < rows;) {
    const std::int64_t end = std::min(rows, at + together);
    for (std::int64_t row = at; row < end; ++row) prepare_row(table, source, begin + row, row, block, scratch);
    scratch.reset();
    if (block.left.fetch_sub(end - at, std::memory_order_acq_rel) > end - at) continue;
    if (source.form == RowForm::kInt8) list_residuals(block.quantized, rows);
    return block.ready.store(true, std::memory_order_release);
  }
  for (int look = 0; !block.ready.load(std::memory_order_acquire); ++look)
    if (look > kLooks) std::this_thread::yield();
}

}  // namespace weir::kernels
