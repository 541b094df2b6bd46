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

#include "kernels/avx2/int8_rows.inl"

// Integer sums by multiplying bytes to pairs in 16 bits.
template <int kTogether>
struct PairSums {
  static constexpr bool kSigned = kTogether == kWide;  // weights have their zero point taken away

  template <int kTile, int kGroup>
  static inline void add(const std::uint8_t* weights, const std::int8_t* const* q, __m256i* sums) {
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
};

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
  for_traits(t.panels[0].traits, [&]<int kTogether, int kGroup> { tile<PairSums<kTogether>, kGroup>(t); });
}

void residual_tile(const ResidualTile& t) {
  for_traits(t.panels[0].traits, [&]<int kTogether, int kGroup> { residuals<PairSums<kTogether>, kGroup>(t); });
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

}  // namespace weir::kernels::avx2

#include "kernels/avx2/target_end.h"
#endif
