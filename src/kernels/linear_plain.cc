// SPDX-License-Identifier: Apache-2.0
// Panels come from the packed weight, or are packed on the way. Four panels are multiplied together, block by block of inputs;
// with many rows a block is widened once, which changes no sum.
#include "kernels/linear_plain.h"

#include <algorithm>

namespace weir::kernels {
namespace {

// Rows from which a block is widened apart. kernels_bench on Zen 4: up to 30 % slower at 8 rows, even from 64 on; where conversions
// and multiply-adds share ports more tightly (Intel, AVX2) it must pay there.
constexpr std::int64_t kWidenRows = 64;

// The weight's inputs from `k` on of output `o` and its neighbours.
PlainSource source_at(const Weight& weight, std::int64_t o, std::int64_t k, std::int64_t count) {
  const TensorView& view = weight.view;
  const std::int64_t stride = view.bytes_per_row(), element = row_bytes(view.type, 1);
  const bool rows = weight.layout == WeightLayout::kOutIn;
  return {.type = view.type,
          .layout = weight.layout,
          .w = view.bytes.data() + (rows ? o * stride + k * element : k * stride + o * element),
          .stride = stride,
          .outs = static_cast<int>(std::min<std::int64_t>(kPanelOuts, weight.out() - o)),
          .k = count};
}

// Where blocks are prepared that do not lie ready in the packed weight.
struct Buffers {
  std::byte* packed;
  float* wide;  // null: blocks are not widened
};

// The block of inputs after [k, k + kPlainBlock) of panels at output `o`, in the packed weight; this one again after the last.
const std::byte* next_block(const Weight& weight, std::int64_t o, int panels, std::int64_t k) {
  const std::int64_t whole = plain_panel_bytes(weight.view.type, weight.in());
  std::int64_t next_o = o, next_k = k + kPlainBlock;
  if (next_k >= weight.in()) next_k = 0, next_o += panels * kPanelOuts;
  if (next_o + panels * kPanelOuts > weight.out()) next_o = o, next_k = k;
  return weight.packed + next_o / kPanelOuts * whole + plain_panel_bytes(weight.view.type, next_k);
}

PanelBlock load_block(const KernelTable& table, const Weight& weight, std::int64_t o, int panels, std::int64_t k, const Buffers& buffers) {
  const DType type = weight.view.type;
  PanelBlock block{
      .type = type, .stride = plain_panel_bytes(type, weight.in()), .panels = panels, .k = std::min(kPlainBlock, weight.in() - k)};
  block.next_step = type == DType::kF16 ? 32 : 64;
  if (weight.packed) {
    block.w = weight.packed + o / kPanelOuts * block.stride + plain_panel_bytes(type, k);
    block.next = next_block(weight, o, panels, k);
    block.next_stride = block.stride;
  } else {
    block.w = block.next = buffers.packed;
    block.stride = plain_panel_bytes(type, kPlainBlock);
    for (int p = 0; p < panels; ++p) table.plain.pack(source_at(weight, o + p * kPanelOuts, k, block.k), buffers.packed + p * block.stride);
  }
  if (!buffers.wide) return block;
  for (int p = 0; p < panels; ++p)
    table.plain.widen(type, block.w + p * block.stride, plain_padded(block.k), buffers.wide + p * kPlainBlock * kPanelOuts);
  block.type = DType::kF32;
  block.w = reinterpret_cast<const std::byte*>(buffers.wide);
  block.stride = plain_panel_bytes(DType::kF32, kPlainBlock);
  block.next_step = 32;
  return block;
}

// A task's activations, as floats or rounded to bf16.
struct Input {
  ConstMatrix x;
  RoundedRows rounded = {};  // none: x is used
};

void multiply(const KernelTable& table, const Input& in, std::int64_t k, PanelBlock block, float* acc) {
  const std::int64_t acc_stride = in.x.rows * kPanelOuts;
  const auto rows = static_cast<int>(in.x.rows);
  if (rows == 1 && table.row_ahead_bytes == 0) block.next = nullptr;
  if (!in.rounded.data) return table.plain.tile({block, in.x.data + k, in.x.stride, rows, acc, acc_stride});
  block.k = plain_padded(block.k);
  table.plain.bf16_tile({block, in.rounded.data + k, in.rounded.stride, rows, acc, acc_stride, k == 0});
}

// Panels multiplied together. A single row is bound by memory, which is fastest in order; two panels where a sum's latency would show.
// Of short sums (adapters) the calls for a panel cost more than its product.
int panels_together(std::int64_t rows, std::int64_t inputs, bool rounded, DType type) {
  constexpr std::int64_t kShort = 2 * kPlainPadding;
  if (rows > 1 || inputs <= kShort) return kPlainPanels;
  return rounded || type == DType::kF32 ? 1 : 2;
}

}  // namespace

void run_plain(const KernelTable& table, const PlainTask& task, Scratch& scratch) {
  const Weight& weight = *task.job->weight;
  const DType type = weight.view.type;
  const ConstMatrix x = task.job->x.row_range(task.row_begin, task.row_end - task.row_begin);
  const bool rounded = task.rounded != nullptr;
  const Input input{x, rounded ? *task.rounded : RoundedRows{}};
  Buffers buffers{nullptr, nullptr};
  if (!weight.packed) buffers.packed = scratch.take<std::byte>(kPlainPanels * plain_panel_bytes(type, kPlainBlock));
  if (!rounded && type != DType::kF32 && x.rows >= kWidenRows) buffers.wide = scratch.take<float>(kPlainPanels * kPlainBlock * kPanelOuts);
  float* acc = scratch.take<float>(kPlainPanels * x.rows * kPanelOuts);
  const int together = panels_together(x.rows, x.cols, rounded, type) * kPanelOuts;
  for (std::int64_t o = task.out_begin; o < task.out_end; o += together) {
    const auto outs = static_cast<int>(std::min<std::int64_t>(task.out_end - o, together));
    const int panels = (outs + kPanelOuts - 1) / kPanelOuts;
    if (!rounded) std::fill_n(acc, panels * x.rows * kPanelOuts, 0.0f);
    for (std::int64_t k = 0; k < x.cols; k += kPlainBlock) multiply(table, input, k, load_block(table, weight, o, panels, k, buffers), acc);
    write_dots(table, *task.job, task.row_begin, task.row_end, acc, o, outs, x.rows * kPanelOuts);
  }
}

std::int64_t plain_packed_bytes(const Weight& weight) {
  return (weight.out() + kPanelOuts - 1) / kPanelOuts * plain_panel_bytes(weight.view.type, weight.in());
}

void pack_plain_panel(const KernelTable& table, const Weight& weight, std::int64_t panel, std::byte* out) {
  table.plain.pack(source_at(weight, panel * kPanelOuts, 0, weight.in()), out);
}

}  // namespace weir::kernels
