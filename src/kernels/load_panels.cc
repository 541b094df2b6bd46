// SPDX-License-Identifier: Apache-2.0
#include "kernels/load_panels.h"

#include <algorithm>

namespace weir::kernels {
namespace {

// Asks for the bytes of `outs` rows that the next panel reads. Rows lie apart, which no hardware prefetcher follows.
void prefetch_panel(const std::byte* w, std::int64_t stride, std::int64_t outs, std::int64_t bytes) {
  constexpr std::int64_t kLine = 64;
  if (stride == bytes) {  // whole rows: one run of memory
    bytes *= outs;
    outs = 1;
  }
  for (std::int64_t o = 0; o < outs; ++o, w += stride)
    for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(w + at, 0, 2);
}

// Unpacks inputs [begin, begin + panel.k) of outputs from `o` on from the file's layout, and asks for what comes next.
void unpack_panel(const KernelTable& table, const TensorView& w, std::int64_t o, int outs, std::int64_t begin, const Panel& panel) {
  const std::int64_t stride = w.bytes_per_row(), k = w.cols();
  const std::int64_t next = begin + panel.k, next_outs = std::min<std::int64_t>(kPanelOuts, w.rows() - o - kPanelOuts);
  if (next < k) {
    prefetch_panel(w.bytes.data() + o * stride + row_bytes(w.type, next), stride, outs, row_bytes(w.type, chunk_at(k, next)));
  } else if (next_outs > 0) {
    prefetch_panel(w.bytes.data() + (o + kPanelOuts) * stride, stride, next_outs, row_bytes(w.type, chunk_at(k, 0)));
  }
  table.unpack_panel(w.type, w.bytes.data() + o * stride, stride, outs, begin, panel);
}

}  // namespace

Panel take_panel(DType type, Scratch& scratch) {
  Panel panel{.traits = quant_traits(type)};
  const std::int64_t groups = kMostPanelInputs / panel.traits.group;
  panel.q = scratch.take<std::uint8_t>(kMostPanelInputs * kPanelOuts);
  panel.scale = scratch.take<float>(groups * kPanelOuts);
  panel.offset = scratch.take<float>(groups * kPanelOuts);
  return panel;
}

void load_panels(const KernelTable& table, const Weight& weight, const PackedShape& shape, std::int64_t o, std::int64_t out_end,
                 std::int64_t begin, int count, Panel* panels) {
  const TensorView& w = weight.view;
  for (int p = 0; p < count; ++p) panels[p].k = static_cast<int>(chunk_at(w.cols(), begin));
  if (weight.packed) return table.expand_panels({w.type, &shape, weight.packed + o / kStripeOuts * shape.bytes, count, begin}, panels);
  for (int p = 0; p < count; ++p) {
    const std::int64_t first = o + p * kPanelOuts;
    unpack_panel(table, w, first, static_cast<int>(std::min<std::int64_t>(kPanelOuts, out_end - first)), begin, panels[p]);
  }
}

}  // namespace weir::kernels
