// SPDX-License-Identifier: Apache-2.0
// Panels come from the packed weight, or are packed on the way. Four panels are multiplied together, block by block of inputs;
// with many rows a block is widened once, which changes no sum.
#include "kernels/linear_plain.h"

#include <algorithm>

namespace weir::kernels {
namespace {

constexpr std::int64_t kWidenRows = 7;  // rows from which widening a block apart pays: more than a tile's

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

// A block of inputs of neighbouring panels, as a tile takes it.
struct Block {
  DType type;
  const std::byte* w;
  std::int64_t panel_stride;
};

// Where blocks are prepared that do not lie ready in the packed weight.
struct Buffers {
  std::byte* packed;
  float* wide;  // null: blocks are not widened
};

Block load_block(const KernelTable& table, const Weight& weight, std::int64_t o, int panels, std::int64_t k, const Buffers& buffers) {
  const DType type = weight.view.type;
  const std::int64_t count = std::min(kPlainBlock, weight.in() - k), whole = plain_panel_bytes(type, weight.in());
  Block block{type, nullptr, whole};
  if (weight.packed) {
    block.w = weight.packed + o / kPanelOuts * whole + plain_panel_bytes(type, k);
  } else {
    block.w = buffers.packed;
    block.panel_stride = plain_panel_bytes(type, kPlainBlock);
    for (int p = 0; p < panels; ++p)
      table.plain.pack(source_at(weight, o + p * kPanelOuts, k, count), buffers.packed + p * block.panel_stride);
  }
  if (!buffers.wide) return block;
  for (int p = 0; p < panels; ++p)
    table.plain.widen(type, block.w + p * block.panel_stride, plain_padded(count), buffers.wide + p * kPlainBlock * kPanelOuts);
  return {DType::kF32, reinterpret_cast<const std::byte*>(buffers.wide), plain_panel_bytes(DType::kF32, kPlainBlock)};
}

// A task's activations, as floats or rounded to bf16.
struct Input {
  ConstMatrix x;
  const std::uint16_t* rounded;  // null: x is used
  std::int64_t rounded_stride;
};

Input round_input(const KernelTable& table, ConstMatrix x, Scratch& scratch) {
  const std::int64_t padded = plain_padded(x.cols), stride = padded + kPlainPadding;  // an odd number of lines: rows spread over the cache
  auto* rounded = scratch.take<std::uint16_t>(x.rows * stride);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    table.narrow(DType::kBF16, x.row(r), x.cols, reinterpret_cast<std::byte*>(rounded + r * stride));
    std::fill(rounded + r * stride + x.cols, rounded + r * stride + padded, std::uint16_t{0});
  }
  return {x, rounded, stride};
}

void multiply(const KernelTable& table, const Input& in, std::int64_t k, const Block& block, int panels, float* acc) {
  const std::int64_t count = std::min(kPlainBlock, in.x.cols - k), acc_stride = in.x.rows * kPanelOuts;
  const auto rows = static_cast<int>(in.x.rows);
  if (in.rounded) {
    table.plain.bf16_tile(
        {block.w, block.panel_stride, panels, plain_padded(count), in.rounded + k, in.rounded_stride, rows, acc, acc_stride});
  } else {
    table.plain.tile({block.type, block.w, block.panel_stride, panels, count, in.x.row(0) + k, in.x.stride, rows, acc, acc_stride});
  }
}

}  // namespace

void run_plain(const KernelTable& table, Activations activations, const PlainTask& task, Scratch& scratch) {
  const Weight& weight = *task.job->weight;
  const DType type = weight.view.type;
  const ConstMatrix x = task.job->x.row_range(task.row_begin, task.row_end - task.row_begin);
  const bool rounded = activations == Activations::kInt8 && type == DType::kBF16 && table.plain.bf16_tile;
  const Input input = rounded ? round_input(table, x, scratch) : Input{x, nullptr, 0};
  Buffers buffers{nullptr, nullptr};
  if (!weight.packed) buffers.packed = scratch.take<std::byte>(kPlainPanels * plain_panel_bytes(type, kPlainBlock));
  if (!rounded && type != DType::kF32 && x.rows >= kWidenRows) buffers.wide = scratch.take<float>(kPlainPanels * kPlainBlock * kPanelOuts);
  float* acc = scratch.take<float>(kPlainPanels * x.rows * kPanelOuts);
  for (std::int64_t o = task.out_begin; o < task.out_end; o += kPlainPanels * kPanelOuts) {
    const std::int64_t outs = std::min<std::int64_t>(task.out_end - o, kPlainPanels * kPanelOuts);
    const auto panels = static_cast<int>((outs + kPanelOuts - 1) / kPanelOuts);
    std::fill_n(acc, panels * x.rows * kPanelOuts, 0.0f);
    for (std::int64_t k = 0; k < x.cols; k += kPlainBlock)
      multiply(table, input, k, load_block(table, weight, o, panels, k, buffers), panels, acc);
    for (int p = 0; p < panels; ++p) {
      write_dots(table, *task.job, task.row_begin, task.row_end, acc + p * x.rows * kPanelOuts, o + p * kPanelOuts,
                 static_cast<int>(std::min<std::int64_t>(kPanelOuts, outs - p * kPanelOuts)));
    }
  }
}

std::int64_t plain_packed_bytes(const Weight& weight) {
  return (weight.out() + kPanelOuts - 1) / kPanelOuts * plain_panel_bytes(weight.view.type, weight.in());
}

void pack_plain_panel(const KernelTable& table, const Weight& weight, std::int64_t panel, std::byte* out) {
  table.plain.pack(source_at(weight, panel * kPanelOuts, 0, weight.in()), out);
}

}  // namespace weir::kernels
