// SPDX-License-Identifier: Apache-2.0
// simd/attention.inl on pairs of BF16: queries, keys, weights and values in BF16, products and sums in float.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"

#include "kernels/avx512/target_bf16_begin.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kBlockEntries = 4, kScoreTiles = 4, kValueParts = 4;

// clang-format off: each needs those before it
#include "kernels/avx512/vec.inl"
#include "kernels/simd/math.inl"
#include "kernels/simd/attention_tiles.inl"
#include "kernels/simd/attention.inl"
#include "kernels/avx512/pair_words.inl"
// clang-format on

void pack_query_pairs(const float* q, std::int64_t dim, float scale, float* out) {
  for (std::int64_t d = 0; d < dim; d += 32) {
    const std::int64_t here = dim - d < 32 ? dim - d : 32, first = here < 16 ? here : 16;
    const V low = load_n(q + d, first) * set1(scale), high = here > 16 ? load_n(q + d + 16, here - 16) * set1(scale) : zero();
    _mm512_mask_storeu_epi32(out + d / 2, mask_below((here + 1) / 2), round_pairs(low, high));
  }
}

// Sixteen rows of pairs, turned: out[pair][16].
void pack_keys_pairs(const TileRows& t, std::byte* tile) {
  for (std::int64_t d = 0; d < t.dim; d += 32) {
    const std::int64_t here = t.dim - d < 32 ? t.dim - d : 32, first = here < 16 ? here : 16;
    V square[16];
    for (int i = 0; i < kKvTile; ++i) {
      const float* row = t.rows + i * t.stride + d;
      const V low = i < t.count ? load_n(row, first) : zero(), high = i < t.count && here > 16 ? load_n(row + 16, here - 16) : zero();
      square[i] = {_mm512_castsi512_ps(round_pairs(low, high))};
    }
    alignas(64) float turned[256];
    transpose16(square, turned, 16);
    __builtin_memcpy(tile + d / 2 * kKvTile * 4, turned, static_cast<std::size_t>((here + 1) / 2 * kKvTile * 4));
  }
}

void pack_values_pairs(const TileRows& t, std::byte* tile) {
  // Lane i of the result takes the halves 16 · (even row) + i and its partner of the odd row.
  const __m512i low = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18,
                                       2, 17, 1, 16, 0);
  for (int i = 0; i < kKvTile; i += 2) {
    for (std::int64_t d = 0; d < t.dim; d += 16) {
      const std::int64_t here = t.dim - d < 16 ? t.dim - d : 16;
      const V even = i < t.count ? load_n(t.rows + i * t.stride + d, here) : zero();
      const V odd = i + 1 < t.count ? load_n(t.rows + (i + 1) * t.stride + d, here) : zero();
      const __m512i pairs = _mm512_permutexvar_epi16(low, round_pairs(even, odd));
      _mm512_mask_storeu_epi32(tile + (i / 2 * t.dim + d) * 4, mask_below(here), pairs);
    }
  }
}

}  // namespace

void add_attention_bf16(KernelTable& table) {
  table.attention.bf16 = {attention_step<PairWords>, pack_query_pairs, pack_keys_pairs, pack_values_pairs};
}

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
