// SPDX-License-Identifier: Apache-2.0
// Products with F32, F16 and BF16 weights. Many rows share one widening of the weights.
#include "kernels/linear_plain.h"

#include <algorithm>

namespace weir::kernels {
namespace {

void run_float(const KernelTable& table, const PlainTask& t, Scratch& scratch) {
  const TensorView& w = t.job->weight->view;
  const std::int64_t rows = t.row_end - t.row_begin, stride = w.bytes_per_row(), k = w.cols();
  float* dots = scratch.take<float>(rows * kPanelOuts);
  const bool widen = rows >= 4 && w.type != DType::kF32;  // pays when several rows use it
  float* wide = widen ? scratch.take<float>(k * kPanelOuts) : nullptr;
  for (std::int64_t o = t.out_begin; o < t.out_end; o += kPanelOuts) {
    const auto outs = static_cast<int>(std::min<std::int64_t>(kPanelOuts, t.out_end - o));
    const std::byte* from = w.bytes.data() + o * stride;
    FloatTile tile{t.job->x.row(t.row_begin), t.job->x.stride, static_cast<int>(rows), w.type, from, stride, outs, k, dots};
    if (widen) {
      for (int i = 0; i < outs; ++i) table.widen(w.type, from + i * stride, k, wide + i * k);
      tile.type = DType::kF32;
      tile.w = reinterpret_cast<const std::byte*>(wide);
      tile.w_stride = k * static_cast<std::int64_t>(sizeof(float));
    }
    table.float_tile(tile);
    write_dots(table, *t.job, t.row_begin, t.row_end, dots, o, outs);
  }
}

void run_columns(const KernelTable& table, const PlainTask& t, Scratch& scratch) {
  const TensorView& w = t.job->weight->view;
  const std::int64_t rows = t.row_end - t.row_begin, element = row_bytes(w.type, 1);
  float* dots = scratch.take<float>(rows * kPanelOuts);
  for (std::int64_t o = t.out_begin; o < t.out_end; o += kPanelOuts) {
    const auto outs = static_cast<int>(std::min<std::int64_t>(kPanelOuts, t.out_end - o));
    table.column_tile({t.job->x.row(t.row_begin), t.job->x.stride, static_cast<int>(rows), w.type, w.bytes.data() + o * element,
                       w.bytes_per_row(), outs, t.job->weight->in(), dots});
    write_dots(table, *t.job, t.row_begin, t.row_end, dots, o, outs);
  }
}

}  // namespace

void run_plain(const KernelTable& table, const PlainTask& task, Scratch& scratch) {
  task.job->weight->layout == WeightLayout::kInOut ? run_columns(table, task, scratch) : run_float(table, task, scratch);
}

}  // namespace weir::kernels
