// SPDX-License-Identifier: Apache-2.0
// Activations to int8, sixteen blocks of 32 at a time: their maxima and sums are found together, by transposing as they are
// reduced. The arithmetic is that of reference::quantize_row.
#if defined(__x86_64__)
#include "kernels/avx512/intrinsics.h"

#include "kernels/avx512/kernels.h"

#include "kernels/avx512/target_begin.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kBlocksTogether = 16;
constexpr int kFewBlocks = 4;  // are quantised one by one

struct TakeMax {
  static __m512 of(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
};
struct TakeSum {  // of small integers: exact in any order
  static __m512 of(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
};

// Lane i of the result reduces the sixteen lanes of rows[i].
template <class Take>
WEIR_INLINE __m512 reduce_rows(const __m512* rows) {
  __m512 quarters[4];
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512* r = rows + 4 * i;
    const __m512 ab = Take::of(_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpackhi_ps(r[0], r[1]));
    const __m512 cd = Take::of(_mm512_unpacklo_ps(r[2], r[3]), _mm512_unpackhi_ps(r[2], r[3]));
    const __m512d low = _mm512_unpacklo_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    const __m512d high = _mm512_unpackhi_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    quarters[i] = Take::of(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
  }
  const auto halves = [](__m512 x, __m512 y) { return Take::of(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xdd)); };
  return halves(halves(quarters[0], quarters[1]), halves(quarters[2], quarters[3]));
}

inline __m512i minus(__m512 sums) { return _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_cvtps_epi32(sums)); }

// Sums of half blocks alternate: first and second half of block 0, of block 1, …
inline void store_halves(__m512 first, __m512 second, __m512 scale, int count, std::int64_t to, const QuantizedRows& out) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i of_scale = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), eight = _mm512_set1_epi32(8);
  const std::uint32_t used = count == kBlocksTogether ? ~0u : (1u << 2 * count) - 1u;
  const auto store = [&](__m512 sums, __m512 scales, __mmask16 mask, std::int64_t at) {
    _mm512_mask_storeu_epi32(out.minus_sum16 + at, mask, minus(sums));
    _mm512_mask_storeu_ps(out.scaled_sum16 + at, mask, _mm512_mul_ps(scales, sums));
  };
  store(_mm512_permutex2var_ps(first, low, second), _mm512_permutexvar_ps(of_scale, scale), static_cast<__mmask16>(used), to);
  store(_mm512_permutex2var_ps(first, _mm512_add_epi32(low, eight), second),
        _mm512_permutexvar_ps(_mm512_add_epi32(of_scale, eight), scale), static_cast<__mmask16>(used >> 16), to + 16);
}

// Blocks [0, count) of `x`, of which block 0 is block `at` of all rows. kCount: count, when it is known; 0: fewer than together.
template <int kCount>
inline void quantize_blocks(const float* x, int some, std::int64_t at, const QuantizedRows& out) {
  const int count = kCount > 0 ? kCount : some;
  __m512 rows[2 * kBlocksTogether];
  WEIR_UNROLL
  for (int b = 0; b < kBlocksTogether; ++b) {
    rows[b] = rows[kBlocksTogether + b] = _mm512_setzero_ps();
    if (b < count) rows[b] = _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(x + b * 32)), _mm512_abs_ps(_mm512_loadu_ps(x + b * 32 + 16)));
  }
  const __m512 top = reduce_rows<TakeMax>(rows), steps = _mm512_set1_ps(127.0f);
  const __mmask16 used = static_cast<__mmask16>((1u << count) - 1u);
  const __mmask16 live = _mm512_cmp_ps_mask(top, _mm512_set1_ps(kSmallestBlock), _CMP_NLT_UQ);  // NaN too
  const __m512 scale = _mm512_maskz_div_ps(live, top, steps);
  alignas(64) float inverse[kBlocksTogether];
  _mm512_store_ps(inverse, _mm512_maskz_div_ps(live, steps, top));
  const __m512 lower = _mm512_set1_ps(-127.0f);
  for (int b = 0; b < count; ++b) {
    __m512 q[2];
    WEIR_UNROLL
    for (int half = 0; half < 2; ++half) {
      const __m512 value = _mm512_mul_ps(_mm512_loadu_ps(x + b * 32 + half * 16), _mm512_set1_ps(inverse[b]));
      const __m512 rounded = _mm512_roundscale_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      q[half] = _mm512_min_ps(_mm512_max_ps(rounded, lower), steps);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out.q + at * 32 + b * 32 + half * 16), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(q[half])));
    }
    rows[b] = _mm512_add_ps(q[0], q[1]);
    rows[kBlocksTogether + b] = q[0];
  }
  const __m512 both = reduce_rows<TakeSum>(rows);
  _mm512_mask_storeu_ps(out.scale + at, used, scale);
  _mm512_mask_storeu_epi32(out.minus_sum32 + at, used, minus(both));
  _mm512_mask_storeu_ps(out.scaled_sum32 + at, used, _mm512_mul_ps(scale, both));
  if (!out.halves) return;
  const __m512 first = reduce_rows<TakeSum>(rows + kBlocksTogether);
  store_halves(first, _mm512_sub_ps(both, first), scale, count, 2 * at, out);
}

// Block `at` of all rows.
inline void quantize_block(const float* x, std::int64_t at, const QuantizedRows& out) {
  const __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
  const float top = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
  const bool flat = top < kSmallestBlock;
  const float scale = flat ? 0.0f : top / 127.0f;
  const __m512 inverse = _mm512_set1_ps(flat ? 0.0f : 127.0f / top), steps = _mm512_set1_ps(127.0f), lower = _mm512_set1_ps(-127.0f);
  const auto round = [&](__m512 value, std::int8_t* q) {
    const __m512 rounded = _mm512_roundscale_ps(_mm512_mul_ps(value, inverse), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512i whole = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(rounded, lower), steps));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtepi32_epi8(whole));
    return _mm512_reduce_add_epi32(whole);
  };
  const int first = round(low, out.q + at * 32), second = round(high, out.q + at * 32 + 16);
  out.scale[at] = scale;
  out.minus_sum32[at] = -(first + second);
  out.scaled_sum32[at] = scale * static_cast<float>(first + second);
  if (!out.halves) return;
  out.minus_sum16[2 * at] = -first;
  out.minus_sum16[2 * at + 1] = -second;
  out.scaled_sum16[2 * at] = scale * static_cast<float>(first);
  out.scaled_sum16[2 * at + 1] = scale * static_cast<float>(second);
}

void quantize_row(const float* x, std::int64_t row, const QuantizedRows& out) {
  const std::int64_t blocks = out.inputs / 32, first = row * (out.k / 32);
  for (std::int64_t b = 0; b < blocks; b += kBlocksTogether) {
    const std::int64_t left = blocks - b;
    if (left <= kFewBlocks) {
      for (std::int64_t i = b; i < blocks; ++i) quantize_block(x + i * 32, first + i, out);
    } else if (left >= kBlocksTogether) {
      quantize_blocks<kBlocksTogether>(x + b * 32, kBlocksTogether, first + b, out);
    } else {
      quantize_blocks<0>(x + b * 32, static_cast<int>(left), first + b, out);
    }
  }
}

}  // namespace

void add_quantize(KernelTable& table) { table.quantize_row = quantize_row; }

}  // namespace weir::kernels::avx512

#include "kernels/avx512/target_end.h"
#endif
