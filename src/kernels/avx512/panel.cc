// SPDX-License-Identifier: Apache-2.0
// int8 products with AVX-512 VNNI: one instruction adds four products to each of sixteen outputs.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"
#include "kernels/packed_panels.h"
#include "tensor/block_formats.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kWideRows = 4;

// clang-format off: each needs those before it
#include "kernels/avx512/bytes.inl"
#include "kernels/avx512/vec.inl"
#include "kernels/simd/tables.inl"
#include "kernels/simd/unpack.inl"
#include "kernels/simd/wide_tile.inl"
#include "kernels/avx512/line.inl"
#include "kernels/simd/expand.inl"
#include "kernels/avx512/row_start.inl"
// clang-format on

constexpr int kAheadOfGroup = 128;  // bytes asked for while a tile multiplies one group

// Rows `row` to `row` + kTile times kPanels panels. Four panels' worth of registers would spill: 6 × 2 came out best of 12
// shapes on Zen 4 (79 % of the int8 peak without offsets, 71 % with), where one fused multiply-add costs as much as one dot product.
template <int kTile, int kPanels, int kGroup, bool kOffset>
inline void rows_of_panels(const PanelTile& t, int first, const std::byte* ahead) {
  const QuantizedRows& x = *t.x;
  const RowStart<kGroup> start(x, t.first_row + first, t.k_begin);
  const std::int64_t q_stride = x.k, stride = x.k / kGroup, scale_stride = x.k / 32;
  const __m128i zero_bits = zero_bits_of(t.panels[0].traits);
  const std::uint8_t* weights[kPanels];
  const float *scales[kPanels], *offsets[kPanels];
  __m512 total[kTile][kPanels];
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    weights[p] = t.panels[p].q, scales[p] = t.panels[p].scale, offsets[p] = t.panels[p].offset;
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) total[r][p] = _mm512_loadu_ps(t.acc + p * t.acc_stride + (first + r) * kPanelOuts);
  }
  ask_for<kTile>(t.out, first);
  const int groups = t.panels[0].k / kGroup;
  for (int g = 0; g < groups; ++g, ahead += kAheadOfGroup) {
    for (int line = 0; line < kAheadOfGroup; line += 64) __builtin_prefetch(ahead + line, 0, 2);
    __m512i sums[kTile][kPanels];
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) {
      const __m512i from = kOffset ? _mm512_setzero_si512() : times_zero_point(start.minus_sum[r * stride + g], zero_bits);
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) sums[r][p] = from;
    }
    WEIR_UNROLL
    for (int quad = 0; quad < kGroup / 4; ++quad) {
      __m512i w[kPanels];
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) w[p] = _mm512_loadu_si512(weights[p] + (g * kGroup / 4 + quad) * 64);
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) {
        const __m512i values = broadcast4(start.q + r * q_stride + g * kGroup + quad * 4);
        WEIR_UNROLL
        for (int p = 0; p < kPanels; ++p) sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], w[p], values);
      }
    }
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) {
      const __m512 row_scale = _mm512_set1_ps(start.scale[r * scale_stride + g * kGroup / 32]);
      const __m512 scaled_sum = kOffset ? _mm512_set1_ps(start.scaled_sum[r * stride + g]) : row_scale;
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        const __m512 both = _mm512_mul_ps(_mm512_loadu_ps(scales[p] + g * kPanelOuts), row_scale);
        if constexpr (kOffset) total[r][p] = _mm512_fmadd_ps(_mm512_loadu_ps(offsets[p] + g * kPanelOuts), scaled_sum, total[r][p]);
        total[r][p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r][p]), both, total[r][p]);
      }
    }
  }
  WEIR_UNROLL
  for (int p = 0; p < kPanels; ++p) WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) _mm512_storeu_ps(t.acc + p * t.acc_stride + (first + r) * kPanelOuts, total[r][p]);
}

template <int kPanels, int kGroup, bool kOffset>
void some_rows(const PanelTile& t, int first, int rows, const std::byte* ahead) {
  switch (rows) {
    case 6: return rows_of_panels<6, kPanels, kGroup, kOffset>(t, first, ahead);
    case 5: return rows_of_panels<5, kPanels, kGroup, kOffset>(t, first, ahead);
    case 4: return rows_of_panels<4, kPanels, kGroup, kOffset>(t, first, ahead);
    case 3: return rows_of_panels<3, kPanels, kGroup, kOffset>(t, first, ahead);
    case 2: return rows_of_panels<2, kPanels, kGroup, kOffset>(t, first, ahead);
    default: return rows_of_panels<1, kPanels, kGroup, kOffset>(t, first, ahead);
  }
}

// Rows are shared out evenly: a rest of one or two rows would wait for latencies alone.
template <int kGroup, bool kOffset>
void tile(const PanelTile& t) {
  const int most = 6, tiles = (t.rows + most - 1) / most, step = t.panels[0].k / kGroup * kAheadOfGroup;
  for (int i = 0, row = 0; i < tiles; ++i) {
    const int end = t.rows * (i + 1) / tiles;
    // When all has been asked for, the panels themselves are: they are in the cache already.
    const bool more = std::int64_t{i} * step < t.ahead_bytes;
    const std::byte* ahead = more ? t.ahead + std::int64_t{i} * step : reinterpret_cast<const std::byte*>(t.panels[0].q);
    t.count == 2 ? some_rows<2, kGroup, kOffset>(t, row, end - row, ahead) : some_rows<1, kGroup, kOffset>(t, row, end - row, ahead);
    row = end;
  }
}

template <int kPanels, int kGroup, bool kOffset>
void residuals_of_panels(const ResidualTile& t) {
  const __m128i zero_bits = zero_bits_of(t.panels[0].traits);
  for (const ResidualBlock& b : t.blocks) {
    const RowStart<kGroup> x(*t.residuals, b.entry, 0);
    const __m512 row_scale = _mm512_set1_ps(*x.scale);
    float* acc = t.acc + b.row * kPanelOuts;
    __m512 total[kPanels];
    WEIR_UNROLL
    for (int p = 0; p < kPanels; ++p) total[p] = _mm512_loadu_ps(acc + p * t.acc_stride);
    WEIR_UNROLL
    for (int g = 0; g < 32 / kGroup; ++g) {
      const std::int64_t group = (b.block - t.first_block) * (32 / kGroup) + g;
      __m512i sums[kPanels][2];
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        sums[p][0] = kOffset ? _mm512_setzero_si512() : times_zero_point(x.minus_sum[g], zero_bits);
        sums[p][1] = _mm512_setzero_si512();
      }
      WEIR_UNROLL
      for (int quad = 0; quad < kGroup / 4; ++quad) {
        const __m512i values = broadcast4(x.q + g * kGroup + quad * 4);
        WEIR_UNROLL
        for (int p = 0; p < kPanels; ++p) {
          const __m512i weights = _mm512_loadu_si512(t.panels[p].q + group * kGroup * kPanelOuts + quad * 64);
          sums[p][quad % 2] = _mm512_dpbusd_epi32(sums[p][quad % 2], weights, values);
        }
      }
      WEIR_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        if constexpr (kOffset) {
          const __m512 offset = _mm512_loadu_ps(t.panels[p].offset + group * kPanelOuts);
          total[p] = _mm512_fmadd_ps(offset, _mm512_set1_ps(x.scaled_sum[g]), total[p]);
        }
        const __m512 both = _mm512_mul_ps(_mm512_loadu_ps(t.panels[p].scale + group * kPanelOuts), row_scale);
        total[p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(sums[p][0], sums[p][1])), both, total[p]);
      }
    }
    WEIR_UNROLL
    for (int p = 0; p < kPanels; ++p) _mm512_storeu_ps(acc + p * t.acc_stride, total[p]);
  }
}

template <int kGroup, bool kOffset>
void residuals(const ResidualTile& t) {
  t.count == 2 ? residuals_of_panels<2, kGroup, kOffset>(t) : residuals_of_panels<1, kGroup, kOffset>(t);
}

// Calls f.template operator()<kGroup, kOffset>() for a type.
template <class Function>
inline void for_traits(const QuantTraits& traits, Function f) {
  if (traits.group == 32) return traits.has_offset ? f.template operator()<32, true>() : f.template operator()<32, false>();
  traits.has_offset ? f.template operator()<16, true>() : f.template operator()<16, false>();
}

void panel_tile(const PanelTile& t) {
  for_traits(t.panels[0].traits, [&]<int kGroup, bool kOffset> { tile<kGroup, kOffset>(t); });
}

void residual_tile(const ResidualTile& t) {
  for_traits(t.panels[0].traits, [&]<int kGroup, bool kOffset> { residuals<kGroup, kOffset>(t); });
}

}  // namespace

void add_panels(KernelTable& table) {
  table.unpack_panel = unpack_panel;
  table.expand_panels = expand_panels;
  table.panel_tile = panel_tile;
  table.residual_tile = residual_tile;
  table.widen_panel = widen_panel;
  table.wide_tile = wide_tile;
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
