// SPDX-License-Identifier: Apache-2.0
// Panels of a quantised weight are expanded to bf16 a few hundred inputs at a time and used for all rows of the task. Inputs are taken in
// ranges, so that the activations of a range stay in the second-level cache while the task's outputs pass by; sums are kept meanwhile.
#include "kernels/linear_bf16.h"

#include <algorithm>

#include "kernels/linear_plain.h"
#include "kernels/load_panels.h"

namespace weir::kernels {
namespace {

constexpr std::int64_t kRangeBytes = 1 << 20;  // of activations: half of the smaller second-level caches with tiles
constexpr std::int64_t kOutsTogether = std::int64_t{kPlainPanels} * kPanelOuts;

// Inputs whose activations stay near, for so many rows.
std::int64_t range_inputs(std::int64_t rows) {
  const std::int64_t inputs = kRangeBytes / (rows * static_cast<std::int64_t>(sizeof(std::uint16_t)));
  return std::max(kPanelInputs, inputs / kPanelInputs * kPanelInputs);
}

// One past the inputs of the range that begins at `from`; a rest that joins its last chunk belongs to it.
std::int64_t range_end(std::int64_t from, std::int64_t range, std::int64_t k) {
  return k - from <= range + kMostPanelInputs - kPanelInputs ? k : from + range;
}

// Where panels are brought to bf16, and where they are expanded before that if the weight is not packed.
struct Buffers {
  Buffers(DType type, bool packed, Scratch& scratch) {
    if (!packed)
      for (Panel& panel : panels) panel = take_panel(type, scratch);
    rounded = scratch.take<std::uint16_t>(kPlainPanels * kStride);
  }
  static constexpr std::int64_t kStride = std::int64_t{kMostPanelInputs} * kPanelOuts;
  Panel panels[kPanelsTogether];
  std::uint16_t* rounded;
};

// Inputs [begin, begin + k) of panels from output `o` on.
PanelBlock expand(const KernelTable& table, const RoundedTask& t, const PackedShape& shape, std::int64_t o, int panels, std::int64_t begin,
                  int k, const Buffers& buffers) {
  const Weight& weight = *t.job->weight;
  Panel own[kPanelsTogether] = {buffers.panels[0], buffers.panels[1]};
  for (int p = 0; p < panels; p += kPanelsTogether) {
    const int count = std::min(kPanelsTogether, panels - p);
    const std::int64_t first = o + std::int64_t{p} * kPanelOuts;
    std::uint16_t* const out[kPanelsTogether] = {buffers.rounded + p * Buffers::kStride, buffers.rounded + (p + 1) * Buffers::kStride};
    if (weight.packed) {
      table.round_packed({weight.view.type, &shape, weight.packed + first / kStripeOuts * shape.bytes, count, begin}, k, out);
      continue;
    }
    load_panels(table, weight, shape, first, t.out_end, begin, count, own);
    for (int i = 0; i < count; ++i) table.round_panel(own[i], out[i]);
  }
  return {.type = DType::kBF16,
          .w = reinterpret_cast<const std::byte*>(buffers.rounded),
          .stride = Buffers::kStride * static_cast<std::int64_t>(sizeof(std::uint16_t)),
          .panels = panels,
          .k = k};
}

// What is expanded next, asked for while these inputs are multiplied: those of the same outputs from `begin` on, up to the range's end,
// then the range's first ones of the next outputs.
LinesAhead weights_ahead(const RoundedTask& t, const PackedShape& shape, std::int64_t o, std::int64_t begin, std::int64_t from,
                         std::int64_t to, std::int64_t k) {
  const Weight& weight = *t.job->weight;
  if (begin == to) begin = from, o += kOutsTogether;
  if (!weight.packed || o >= weight.out()) return {};
  const std::int64_t inputs = chunk_at(weight.in(), begin),
                     stripes = (std::min(weight.out() - o, kOutsTogether) + kStripeOuts - 1) / kStripeOuts;
  const std::int64_t lines = (inputs / shape.unit_inputs * shape.unit_bytes + 63) / 64;
  const std::int64_t steps = k / kPlainPadding * ((t.row_end - t.row_begin + 31) / 32) * stripes;
  return {.row = weight.packed + o / kStripeOuts * shape.bytes + begin / shape.unit_inputs * shape.unit_bytes,
          .stride = shape.bytes,
          .rows_left = stripes,
          .lines = lines,
          .each = (stripes * lines + steps - 1) / steps};
}

}  // namespace

RoundedRows allocate_rounded(std::int64_t rows, std::int64_t inputs, Scratch& scratch) {
  const std::int64_t stride = plain_padded(inputs) + kPlainPadding;  // often an odd number of lines: rows spread over a cache's sets
  return {scratch.take<std::uint16_t>(rows * stride), stride};
}

void round_input_row(const KernelTable& table, const float* x, std::int64_t inputs, std::int64_t row, const RoundedRows& out) {
  table.plain.round(x, inputs, out.data + row * out.stride);
}

std::int64_t fewest_outs(std::int64_t rows, std::int64_t inputs) {
  constexpr std::int64_t kSumBytes = 1 << 19;  // that stay near too
  if (range_end(0, range_inputs(rows), inputs) == inputs) return 1;
  return std::max<std::int64_t>(1, kSumBytes / (rows * static_cast<std::int64_t>(sizeof(float))));
}

void run_rounded(const KernelTable& table, const RoundedTask& t, Scratch& scratch) {
  const TensorView& w = t.job->weight->view;
  const PackedShape shape = packed_shape(w.type, w.cols());
  const Buffers buffers(w.type, t.job->weight->packed != nullptr, scratch);
  const std::int64_t rows = t.row_end - t.row_begin, range = range_inputs(rows), stride = rows * kPanelOuts;
  const std::int64_t panels = (t.out_end - t.out_begin + kPanelOuts - 1) / kPanelOuts;
  const bool whole = range_end(0, range, w.cols()) == w.cols();  // the sums of some panels are done before the next ones
  float* acc = scratch.take<float>((whole ? kPlainPanels : panels) * stride);
  for (std::int64_t from = 0, to; from < w.cols(); from = to) {
    to = range_end(from, range, w.cols());
    for (std::int64_t o = t.out_begin; o < t.out_end; o += kOutsTogether) {
      const auto outs = static_cast<int>(std::min(t.out_end - o, kOutsTogether));
      const int count = (outs + kPanelOuts - 1) / kPanelOuts;
      float* sums = whole ? acc : acc + (o - t.out_begin) / kPanelOuts * stride;
      for (std::int64_t begin = from, k; begin < to; begin += k) {
        k = chunk_at(w.cols(), begin);
        const PanelBlock block = expand(table, t, shape, o, count, begin, static_cast<int>(k), buffers);
        LinesAhead ahead = weights_ahead(t, shape, o, begin + k, from, to, k);
        table.plain.bf16_tile({block, t.input.data + begin, t.input.stride, static_cast<int>(rows), sums, stride, begin == 0, &ahead});
      }
      if (to == w.cols()) write_dots(table, *t.job, t.row_begin, t.row_end, sums, o, outs, stride);
    }
  }
}

}  // namespace weir::kernels
