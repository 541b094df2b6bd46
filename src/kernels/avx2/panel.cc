// SPDX-License-Identifier: Apache-2.0
// int8 products with AVX2. The multiply adds neighbours in 16 bits, which holds as long as the unsigned factor is small:
// up to 15, eight products may be added before widening; up to 31 four, up to 63 two. Wider weights take the detour over
// signs and magnitudes.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/avx2/kernels.h"
#include "kernels/packed_panels.h"
#include "tensor/block_formats.h"

#include "kernels/avx2/target_begin.h"

namespace weir::kernels::avx2 {
namespace {

constexpr int kWideRows = 1;

// clang-format off: each needs those before it
#include "kernels/avx2/bytes.inl"
#include "kernels/avx2/vec.inl"
#include "kernels/simd/tables.inl"
#include "kernels/simd/unpack.inl"
#include "kernels/simd/wide_tile.inl"
#include "kernels/avx2/line.inl"
#include "kernels/simd/expand.inl"
// clang-format on

constexpr int kWide = 1;  // instead of a number of products that may be added in 16 bits

inline __m256i broadcast4(const std::int8_t* p) {
  int bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return _mm256_set1_epi32(bits);
}

// Integer sums of one group for eight outputs and kTile rows.
template <int kTile, int kTogether, int kGroup>
inline void group_sums(const std::uint8_t* weights, const std::int8_t* const* q, __m256i* sums) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (int quad = 0; quad < kGroup / 4; quad += kTogether) {
    __m256i pairs[kTile];
    WEIR_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + (quad + i) * 64));
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) {
        const __m256i x = broadcast4(q[r] + (quad + i) * 4);
        __m256i product;
        if constexpr (kTogether == kWide) {
          const __m256i v = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
          product = _mm256_maddubs_epi16(_mm256_abs_epi8(v), _mm256_sign_epi8(x, v));
        } else {
          product = _mm256_maddubs_epi16(w, x);
        }
        pairs[r] = i == 0 ? product : _mm256_add_epi16(pairs[r], product);
      }
    }
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(pairs[r], ones));
  }
}

// Rows `row` to `row` + kTile over `blocks` groups of a panel, from group `first` on.
template <int kTile, int kTogether, int kGroup>
inline void rows_of_panel(const Panel& panel, int first, int groups, const QuantizedRows& x, std::int64_t row, std::int64_t k_begin,
                          float* acc) {
  const std::int8_t* q[kTile];
  std::int64_t block[kTile];
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) {
    q[r] = x.q + (row + r) * x.k + k_begin;
    block[r] = ((row + r) * x.k + k_begin) / kGroup;
  }
  const std::int32_t* minus_sum = kGroup == 32 ? x.minus_sum32 : x.minus_sum16;
  const float* scaled_sum = kGroup == 32 ? x.scaled_sum32 : x.scaled_sum16;
  const int zero_point = kTogether == kWide ? 0 : panel.traits.zero;
  for (int half = 0; half < 2; ++half) {
    __m256 total[kTile];
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) total[r] = _mm256_loadu_ps(acc + r * kPanelOuts + 8 * half);
    for (int g = 0; g < groups; ++g) {
      const std::int8_t* at[kTile];
      __m256i sums[kTile];
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) {
        at[r] = q[r] + g * kGroup;
        sums[r] = _mm256_set1_epi32(zero_point * minus_sum[block[r] + g]);
      }
      group_sums<kTile, kTogether, kGroup>(panel.q + (first + g) * kGroup * kPanelOuts + 32 * half, at, sums);
      const __m256 scale = _mm256_loadu_ps(panel.scale + (first + g) * kPanelOuts + 8 * half);
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) {
        const __m256 both = _mm256_mul_ps(scale, _mm256_set1_ps(x.scale[(block[r] + g) * kGroup / 32]));
        if (panel.traits.has_offset) {
          const __m256 offset = _mm256_loadu_ps(panel.offset + (first + g) * kPanelOuts + 8 * half);
          total[r] = _mm256_fmadd_ps(offset, _mm256_set1_ps(scaled_sum[block[r] + g]), total[r]);
        }
        total[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[r]), both, total[r]);
      }
    }
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) _mm256_storeu_ps(acc + r * kPanelOuts + 8 * half, total[r]);
  }
}

template <int kTogether, int kGroup>
void tile(const PanelTile& t) {
  for (int p = 0; p < t.count; ++p) {
    const Panel& panel = t.panels[p];
    const int groups = panel.k / kGroup;
    float* acc = t.acc + p * t.acc_stride;
    int r = 0;
    for (; r + 4 <= t.rows; r += 4)
      rows_of_panel<4, kTogether, kGroup>(panel, 0, groups, *t.x, t.first_row + r, t.k_begin, acc + r * kPanelOuts);
    for (; r < t.rows; ++r) rows_of_panel<1, kTogether, kGroup>(panel, 0, groups, *t.x, t.first_row + r, t.k_begin, acc + r * kPanelOuts);
  }
}

template <int kTogether, int kGroup>
void residuals(const ResidualTile& t) {
  constexpr int kGroups = 32 / kGroup;
  for (const ResidualBlock& b : t.blocks) {
    for (int p = 0; p < t.count; ++p) {
      rows_of_panel<1, kTogether, kGroup>(t.panels[p], b.block * kGroups, kGroups, *t.residuals, b.entry, 0,
                                          t.acc + p * t.acc_stride + b.row * kPanelOuts);
    }
  }
}

// Calls f.template operator()<kTogether, kGroup>() for a type.
template <class Function>
inline void for_traits(const QuantTraits& traits, Function f) {
  if (traits.group == 32) {
    if (traits.max <= 15) return f.template operator()<8, 32>();
    if (traits.max <= 31) return f.template operator()<4, 32>();
    return f.template operator()<kWide, 32>();
  }
  if (traits.max <= 15) return f.template operator()<4, 16>();
  f.template operator()<2, 16>();  // at most 63: Q6_K
}

void panel_tile(const PanelTile& t) {
  for_traits(t.panels[0].traits, [&]<int kTogether, int kGroup> { tile<kTogether, kGroup>(t); });
}

void residual_tile(const ResidualTile& t) {
  for_traits(t.panels[0].traits, [&]<int kTogether, int kGroup> { residuals<kTogether, kGroup>(t); });
}

}  // namespace

void add_panels(KernelTable& table) {
  table.unpack_panel = unpack_panel;
  table.expand_panels = expand_panels;
  table.panel_tile = panel_tile;
  table.residual_tile = residual_tile;
  table.packed_row = nullptr;
  table.widen_panel = widen_panel;
  table.wide_tile = wide_tile;
}

}  // namespace weir::kernels::avx2

#include "kernels/avx2/target_end.h"
#endif
