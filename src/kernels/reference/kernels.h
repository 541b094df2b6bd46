// SPDX-License-Identifier: Apache-2.0
// The reference kernels one by one, so that other tables can fall back on them and tests can call them. What each does is
// said at its pointer in kernel_table.h.
#pragma once

#include "kernels/kernel_table.h"

namespace weir::kernels::reference {

void widen(DType type, const std::byte* row, std::int64_t n, float* out);
void narrow(DType type, const float* x, std::int64_t n, std::byte* out);
void pack_plain(const PlainSource& source, std::byte* panel);
void pack_plain(const PlainSource& source, std::int64_t k_begin, std::byte* panel);  // inputs from k_begin on
void widen_plain(DType type, const std::byte* panel, std::int64_t k, float* wide);
void plain_tile(const PlainTile& tile);
void write_dots(const DotsTile& tile);
void quantize_row(const float* x, std::int64_t row, const QuantizedRows& out);
void unpack_panel(DType type, const std::byte* w, std::int64_t w_stride, int outs, std::int64_t k_begin, const Panel& panel);
void expand_panels(const PackedPanels& from, const Panel* panels);
void panel_tile(const PanelTile& tile);
void residual_tile(const ResidualTile& tile);
void packed_tile(const PackedTile& tile);
void packed_residuals(const PackedResiduals& tile);
void widen_panel(const Panel& panel, float* wide);
void wide_tile(const float* wide, std::int64_t k, const float* x, std::int64_t x_stride, int rows, float* acc);

void rms_norm(const NormRow& row);
void layer_norm(const NormRow& row);
void activate(Activation kind, const float* x, const float* factor, std::int64_t n, float* out);
void clamped_swiglu(const float* gate, const float* up, float alpha, float limit, std::int64_t n, float* out);
void add(const float* x, float scale, std::int64_t n, float* out);
void multiply(const float* x, std::int64_t n, float* out);
void scale(float factor, float softcap, std::int64_t n, float* x);
void rope(float* x, const float* cosines, const float* sines, std::int64_t half, bool pairs);

const AttentionKernels& attention();

void conv_row(const ConvRow& row, const ConvParams& params);
void ssd_step(const SsdStep& step);
void delta_step(const DeltaStep& step);

}  // namespace weir::kernels::reference
