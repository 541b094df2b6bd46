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

template <int kTile, int kTogether, int kGroup>
inline void rows_of_panel(const Panel& panel, const QuantizedRows& x, std::int64_t row, std::int64_t k_begin, float* acc) {
  const std::int8_t* q[kTile];
  std::int64_t block[kTile];
  WEIR_UNROLL
  for (int r = 0; r < kTile; ++r) {
    q[r] = x.q + (row + r) * x.k + k_begin;
    block[r] = ((row + r) * x.k + k_begin) / kGroup;
  }
  const std::int32_t* group_sum = kGroup == 32 ? x.sum32 : x.sum16;
  const float* scaled_sum = kGroup == 32 ? x.scaled_sum32 : x.scaled_sum16;
  const int zero_point = kTogether == kWide ? 0 : panel.traits.zero;
  for (int half = 0; half < 2; ++half) {
    __m256 total[kTile];
    WEIR_UNROLL
    for (int r = 0; r < kTile; ++r) total[r] = _mm256_loadu_ps(acc + r * kPanelOuts + 8 * half);
    for (int g = 0; g < panel.k / kGroup; ++g) {
      const std::int8_t* at[kTile];
      __m256i sums[kTile];
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) {
        at[r] = q[r] + g * kGroup;
        sums[r] = _mm256_set1_epi32(-zero_point * group_sum[block[r] + g]);
      }
      group_sums<kTile, kTogether, kGroup>(panel.q + g * kGroup * kPanelOuts + 32 * half, at, sums);
      const __m256 scale = _mm256_loadu_ps(panel.scale + g * kPanelOuts + 8 * half);
      WEIR_UNROLL
      for (int r = 0; r < kTile; ++r) {
        const __m256 both = _mm256_mul_ps(scale, _mm256_set1_ps(x.scale[(block[r] + g) * kGroup / 32]));
        if (panel.traits.has_offset) {
          const __m256 offset = _mm256_loadu_ps(panel.offset + g * kPanelOuts + 8 * half);
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
inline void tile(const Panel& panel, const QuantizedRows& x, std::int64_t first_row, int rows, std::int64_t k_begin, float* acc) {
  int r = 0;
  for (; r + 4 <= rows; r += 4) rows_of_panel<4, kTogether, kGroup>(panel, x, first_row + r, k_begin, acc + r * kPanelOuts);
  for (; r < rows; ++r) rows_of_panel<1, kTogether, kGroup>(panel, x, first_row + r, k_begin, acc + r * kPanelOuts);
}

void panel_tile(const Panel& panel, const QuantizedRows& x, std::int64_t first_row, int rows, std::int64_t k_begin, float* acc) {
  const int max = panel.traits.max;
  if (panel.traits.group == 32) {
    if (max <= 15) return tile<8, 32>(panel, x, first_row, rows, k_begin, acc);
    if (max <= 31) return tile<4, 32>(panel, x, first_row, rows, k_begin, acc);
    return tile<kWide, 32>(panel, x, first_row, rows, k_begin, acc);
  }
  if (max <= 15) return tile<4, 16>(panel, x, first_row, rows, k_begin, acc);
  tile<2, 16>(panel, x, first_row, rows, k_begin, acc);  // at most 63: Q6_K
}

}  // namespace

void add_panels(KernelTable& table) {
  table.unpack_panel = unpack_panel;
  table.expand_panel = expand_panel;
  table.panel_tile = panel_tile;
  table.widen_panel = widen_panel;
  table.wide_tile = wide_tile;
}

}  // namespace weir::kernels::avx2

#include "kernels/avx2/target_end.h"
#endif
