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
// clang-format on

inline __m512i broadcast4(const std::int8_t* p) {
  int bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return _mm512_set1_epi32(bits);
}

template <int kTile, int kGroup, bool kOffset>
inline void rows_of_panel(const Panel& panel, const QuantizedRows& x, std::int64_t row, std::int64_t k_begin, float* acc) {
  const std::int8_t* q = x.q + row * x.k + k_begin;
  const std::int64_t q_stride = x.k, stride = x.k / kGroup, scale_stride = x.k / 32, at = (row * x.k + k_begin) / kGroup;
  const std::int32_t* group_sum = (kGroup == 32 ? x.sum32 : x.sum16) + at;
  const float* scaled_sum = (kGroup == 32 ? x.scaled_sum32 : x.scaled_sum16) + at;
  const float* row_scale = x.scale + (row * x.k + k_begin) / 32;
  __m512 total[kTile];
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) total[r] = _mm512_loadu_ps(acc + r * kPanelOuts);
  for (int g = 0; g < panel.k / kGroup; ++g) {
    __m512i sums[kTile];
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) sums[r] = _mm512_set1_epi32(kOffset ? 0 : -panel.traits.zero * group_sum[r * stride + g]);
    const std::uint8_t* weights = panel.q + g * kGroup * kPanelOuts;
    WEIR_UNROLL
    for (int quad = 0; quad < kGroup / 4; ++quad) {
      const __m512i w = _mm512_loadu_si512(weights + quad * 64);
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) sums[r] = _mm512_dpbusd_epi32(sums[r], w, broadcast4(q + r * q_stride + g * kGroup + quad * 4));
    }
    const __m512 scale = _mm512_loadu_ps(panel.scale + g * kPanelOuts);
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) {
      const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(row_scale[r * scale_stride + g * kGroup / 32]));
      if constexpr (kOffset)
        total[r] = _mm512_fmadd_ps(_mm512_loadu_ps(panel.offset + g * kPanelOuts), _mm512_set1_ps(scaled_sum[r * stride + g]), total[r]);
      total[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r]), both, total[r]);
    }
  }
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) _mm512_storeu_ps(acc + r * kPanelOuts, total[r]);
}

template <int kGroup, bool kOffset>
inline void tile(const Panel& panel, const QuantizedRows& x, std::int64_t first_row, int rows, std::int64_t k_begin, float* acc) {
  int r = 0;
  for (; r + 8 <= rows; r += 8) rows_of_panel<8, kGroup, kOffset>(panel, x, first_row + r, k_begin, acc + r * kPanelOuts);
  for (; r + 2 <= rows; r += 2) rows_of_panel<2, kGroup, kOffset>(panel, x, first_row + r, k_begin, acc + r * kPanelOuts);
  for (; r < rows; ++r) rows_of_panel<1, kGroup, kOffset>(panel, x, first_row + r, k_begin, acc + r * kPanelOuts);
}

void panel_tile(const Panel& panel, const QuantizedRows& x, std::int64_t first_row, int rows, std::int64_t k_begin, float* acc) {
  if (panel.traits.group == 32) {
    return panel.traits.has_offset ? tile<32, true>(panel, x, first_row, rows, k_begin, acc)
                                   : tile<32, false>(panel, x, first_row, rows, k_begin, acc);
  }
  return panel.traits.has_offset ? tile<16, true>(panel, x, first_row, rows, k_begin, acc)
                                 : tile<16, false>(panel, x, first_row, rows, k_begin, acc);
}

}  // namespace

void add_panels(KernelTable& table) {
  table.unpack_panel = unpack_panel;
  table.expand_panel = expand_panel;
  table.panel_tile = panel_tile;
  table.widen_panel = widen_panel;
  table.wide_tile = wide_tile;
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
