// SPDX-License-Identifier: Apache-2.0
// A task expands panels of weights into the first-level cache, kPanelInputs inputs at a time, and uses them for all of its rows; a
// single row takes packed weights as they come. Sums are added chunk by chunk, the chunk's outlier blocks after it.
#include "kernels/linear_int8.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/linear_plain.h"
#include "kernels/load_panels.h"
#include "kernels/packed_panels.h"
#include "kernels/unroll.h"

namespace weir::kernels {
namespace {

constexpr int kActivationBlock = 32;  // activations that share a scale
constexpr double kOutlierFactor = 2;  // an outlier block's scale is above this times the root mean square of its row's scales

QuantizedRows allocate_rows(std::int64_t rows, std::int64_t inputs, std::int64_t k, Scratch& scratch) {
  return {.inputs = inputs,
          .k = k,
          .q = scratch.take<std::int8_t>(rows * k),
          .scale = scratch.take<float>(rows * k / 32),
          .scaled_sum32 = scratch.take<float>(rows * k / 32),
          .scaled_sum16 = scratch.take<float>(rows * k / 16),
          .minus_sum32 = scratch.take<std::int32_t>(rows * k / 32),
          .minus_sum16 = scratch.take<std::int32_t>(rows * k / 16),
          .halves = false};
}

// Rows that lie a multiple of a large power of two apart would meet in a few sets of the first-level cache.
std::int64_t spread(std::int64_t k) { return k % 1024 == 0 ? k + 64 : k; }

}  // namespace

QuantizedInput allocate_quantized(std::int64_t rows, std::int64_t k, Scratch& scratch) {
  const std::int64_t blocks = k / kActivationBlock;
  return {.rows = allocate_rows(rows, k, spread(k), scratch),
          .residuals = allocate_rows(rows * blocks, kActivationBlock, kActivationBlock, scratch),
          .count = scratch.take<std::int32_t>(rows),
          .block = scratch.take<std::int32_t>(rows * blocks),
          .list = {scratch.take<ResidualBlock>(rows * blocks), scratch.take<std::int32_t>(blocks + 1)}};
}

void expect(DType type, QuantizedInput& x) {
  if (quant_traits(type).group == 16) x.rows.halves = x.residuals.halves = true;
}

namespace {

// Above this an outlier block's scale lies. The sum has a fixed order of its own, the same for every table.
float outlier_limit(const float* scale, std::int64_t blocks) {
  double squares[4] = {};
  std::int64_t b = 0;
  for (; b + 4 <= blocks; b += 4) {
    WEIR_UNROLL
    for (int i = 0; i < 4; ++i) squares[i] += static_cast<double>(scale[b + i]) * scale[b + i];
  }
  for (int i = 0; b + i < blocks; ++i) squares[i] += static_cast<double>(scale[b + i]) * scale[b + i];
  const double mean = (squares[0] + squares[1] + squares[2] + squares[3]) / static_cast<double>(blocks);
  return static_cast<float>(kOutlierFactor * std::sqrt(mean));
}

// The blocks of one row of residuals from `entry` on: they lie side by side, so they are quantised as one row.
void quantize_residuals(const KernelTable& table, const float* values, int count, std::int64_t entry, const QuantizedRows& out) {
  table.quantize_row(values, 0,
                     {.inputs = std::int64_t{count} * kActivationBlock,
                      .k = std::int64_t{count} * kActivationBlock,
                      .q = out.q + entry * kActivationBlock,
                      .scale = out.scale + entry,
                      .scaled_sum32 = out.scaled_sum32 + entry,
                      .scaled_sum16 = out.scaled_sum16 + 2 * entry,
                      .minus_sum32 = out.minus_sum32 + entry,
                      .minus_sum16 = out.minus_sum16 + 2 * entry,
                      .halves = out.halves});
}

}  // namespace

void quantize_input_row(const KernelTable& table, const float* x, std::int64_t row, const QuantizedInput& out) {
  constexpr int kTogether = 16;
  table.quantize_row(x, row, out.rows);
  const std::int64_t blocks = out.rows.inputs / kActivationBlock, first = row * blocks, at = row * out.rows.k / kActivationBlock;
  const float* scale = out.rows.scale + at;
  const float limit = outlier_limit(scale, blocks);
  float residuals[kTogether * kActivationBlock];
  int waiting = 0;
  std::int32_t found = 0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    if (!(scale[b] > limit)) continue;
    const std::int8_t* q = out.rows.q + (at + b) * kActivationBlock;
    float* to = residuals + waiting * kActivationBlock;
    for (int i = 0; i < kActivationBlock; ++i) to[i] = x[b * kActivationBlock + i] - static_cast<float>(q[i]) * scale[b];
    out.block[first + found++] = static_cast<std::int32_t>(b);
    if (++waiting < kTogether) continue;
    quantize_residuals(table, residuals, waiting, first + found - waiting, out.residuals);
    waiting = 0;
  }
  if (waiting > 0) quantize_residuals(table, residuals, waiting, first + found - waiting, out.residuals);
  out.count[row] = found;
}

void list_residuals(const QuantizedInput& x, std::int64_t rows) {
  const ResidualList& list = x.list;
  const std::int64_t blocks = x.rows.inputs / kActivationBlock;
  std::fill_n(list.begin, blocks + 1, 0);
  const auto for_each = [&](auto visit) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t e = r * blocks; e < r * blocks + x.count[r]; ++e) visit(r, e, x.block[e]);
  };
  for_each([&](std::int64_t, std::int64_t, std::int32_t block) { ++list.begin[block + 1]; });
  for (std::int64_t b = 0; b < blocks; ++b) list.begin[b + 1] += list.begin[b];
  for_each([&](std::int64_t r, std::int64_t e, std::int32_t block) {
    list.blocks[list.begin[block]++] = {static_cast<std::int32_t>(r), block, e};
  });
  for (std::int64_t b = blocks; b > 0; --b) list.begin[b] = list.begin[b - 1];  // where they started
  list.begin[0] = 0;
}

namespace {

// Panels that start with output `o` and are taken together.
int panels_at(std::int64_t o, std::int64_t out_end) {
  return static_cast<int>((std::min(out_end - o, kStripeOuts) + kPanelOuts - 1) / kPanelOuts);
}

// The task's outlier blocks among inputs [begin, end).
std::span<const ResidualBlock> residuals_of(const QuantizedTask& t, std::int64_t begin, std::int64_t end) {
  const ResidualList& list = t.input->list;
  return {list.blocks + list.begin[begin / kActivationBlock], list.blocks + list.begin[end / kActivationBlock]};
}

// All rows of the task times up to kPanelsTogether panels from output `o` on; acc holds `stride` floats per panel.
void multiply_panels(const KernelTable& table, const QuantizedTask& t, const PackedShape& shape, std::int64_t o, Panel* panels, float* acc,
                     std::int64_t stride) {
  const TensorView& w = t.job->weight->view;
  const auto rows = static_cast<int>(t.row_end - t.row_begin);
  const int count = panels_at(o, t.out_end);
  std::fill_n(acc, count * stride, 0.0f);
  for (std::int64_t begin = 0, end; begin < w.cols(); begin = end) {
    end = begin + chunk_at(w.cols(), begin);
    load_panels(table, *t.job->weight, shape, o, t.out_end, begin, count, panels);
    PanelTile tile{panels, count, &t.input->rows, 0, rows, begin, acc, stride};
    if (const std::byte* packed = t.job->weight->packed) {  // after the last chunk: the next stripe
      tile.ahead = packed + o / kStripeOuts * shape.bytes + end / shape.unit_inputs * shape.unit_bytes;
      tile.ahead_bytes = panels[0].k / shape.unit_inputs * shape.unit_bytes;
    }
    if (end == w.cols()) tile.out = {t.job->out.row(t.row_begin) + o, t.job->out.stride};
    table.panel_tile(tile);
    table.residual_tile({panels, count, &t.input->residuals, begin / kActivationBlock, residuals_of(t, begin, end), acc, stride});
  }
}

void run_panels(const KernelTable& table, const QuantizedTask& t, Scratch& scratch) {
  const std::int64_t stride = (t.row_end - t.row_begin) * kPanelOuts;
  const PackedShape shape = packed_shape(t.job->weight->view.type, t.job->weight->view.cols());
  Panel panels[kPanelsTogether];
  for (Panel& panel : panels) panel = take_panel(t.job->weight->view.type, scratch);
  float* acc = scratch.take<float>(stride * kPanelsTogether);
  for (std::int64_t o = t.out_begin; o < t.out_end; o += kStripeOuts) {
    multiply_panels(table, t, shape, o, panels, acc, stride);
    write_dots(table, *t.job, t.row_begin, t.row_end, acc, o, static_cast<int>(std::min(kStripeOuts, t.out_end - o)), stride);
  }
}

// Few rows, straight from the packed weight.
void run_packed(const KernelTable& table, const QuantizedTask& t, Scratch& scratch) {
  const TensorView& w = t.job->weight->view;
  const PackedShape shape = packed_shape(w.type, w.cols());
  const auto rows = static_cast<int>(t.row_end - t.row_begin);
  const std::int64_t stride = rows * kPanelOuts;
  float* acc = scratch.take<float>(stride * kPanelsTogether);
  for (std::int64_t o = t.out_begin; o < t.out_end; o += kStripeOuts) {
    std::fill_n(acc, kPanelsTogether * stride, 0.0f);
    for (std::int64_t begin = 0, end; begin < w.cols(); begin = end) {
      end = begin + chunk_at(w.cols(), begin);
      const PackedPanels panels{w.type, &shape, t.job->weight->packed + o / kStripeOuts * shape.bytes, kPanelsTogether, begin};
      const auto k = static_cast<int>(end - begin);
      PackedTile tile{panels, k, &t.input->rows, 0, rows, acc, stride, k / shape.unit_inputs * shape.unit_bytes};
      if (end == w.cols()) tile.out = {t.job->out.row(t.row_begin) + o, t.job->out.stride};
      tile.row_ahead_bytes = table.row_ahead_bytes;
      table.packed_tile(tile);
      table.packed_residuals({panels, &t.input->residuals, residuals_of(t, begin, end), acc, stride});
    }
    write_dots(table, *t.job, t.row_begin, t.row_end, acc, o, static_cast<int>(std::min(kStripeOuts, t.out_end - o)), stride);
  }
}

// Quantised weights, float activations.
void run_wide(const KernelTable& table, const QuantizedTask& t, Scratch& scratch) {
  const TensorView& w = t.job->weight->view;
  const PackedShape shape = packed_shape(w.type, w.cols());
  const std::int64_t rows = t.row_end - t.row_begin, size = rows * 4 * kPanelOuts;
  Panel panels[kPanelsTogether];
  for (Panel& panel : panels) panel = take_panel(w.type, scratch);
  float* wide = scratch.take<float>(kMostPanelInputs * kPanelOuts);
  float* acc = scratch.take<float>(kPanelsTogether * size);
  float* dots = scratch.take<float>(rows * kPanelOuts);
  for (std::int64_t o = t.out_begin; o < t.out_end; o += kStripeOuts) {
    const int count = panels_at(o, t.out_end);
    std::fill_n(acc, count * size, 0.0f);
    for (std::int64_t begin = 0; begin < w.cols(); begin += chunk_at(w.cols(), begin)) {
      load_panels(table, *t.job->weight, shape, o, t.out_end, begin, count, panels);
      for (int p = 0; p < count; ++p) {
        table.widen_panel(panels[p], wide);
        table.wide_tile(wide, panels[p].k, t.job->x.row(t.row_begin) + begin, t.job->x.stride, static_cast<int>(rows), acc + p * size);
      }
    }
    for (int p = 0; p < count; ++p) {
      for (std::int64_t r = 0; r < rows; ++r) {
        const float* sums = acc + p * size + r * 4 * kPanelOuts;
        for (int i = 0; i < kPanelOuts; ++i)
          dots[r * kPanelOuts + i] = (sums[i] + sums[2 * kPanelOuts + i]) + (sums[kPanelOuts + i] + sums[3 * kPanelOuts + i]);
      }
      const std::int64_t first = o + p * kPanelOuts;
      write_dots(table, *t.job, t.row_begin, t.row_end, dots, first,
                 static_cast<int>(std::min<std::int64_t>(kPanelOuts, t.out_end - first)));
    }
  }
}

}  // namespace

void run_quantized(const KernelTable& table, const QuantizedTask& task, Scratch& scratch) {
  if (!task.input) return run_wide(table, task, scratch);
  const bool nested = packed_traits(task.job->weight->view.type).scales >= PackedScales::kSuper;
  const bool few = task.row_end - task.row_begin <= (nested ? table.most_packed_rows_of_k : table.most_packed_rows);
  return few && task.job->weight->packed ? run_packed(table, task, scratch) : run_panels(table, task, scratch);
}

}  // namespace weir::kernels
