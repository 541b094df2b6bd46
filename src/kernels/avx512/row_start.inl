// SPDX-License-Identifier: Apache-2.0
// Where a row's activations lie, and what a group's sums start with.

inline __m512i broadcast4(const std::int8_t* p) {
  int bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return _mm512_set1_epi32(bits);
}

// Where a group's sums start: minus zero point times the sum of the activations. Zero points are powers of two.
inline __m512i times_zero_point(std::int32_t minus_sum, __m128i zero_bits) {
  return _mm512_sll_epi32(_mm512_set1_epi32(minus_sum), zero_bits);
}
inline __m128i zero_bits_of(const QuantTraits& traits) {
  return _mm_cvtsi32_si128(__builtin_ctz(static_cast<unsigned>(traits.zero ? traits.zero : 1)));
}

// What a row brings to the groups of a tile: pointers to its values at the tile's first group.
template <int kGroup>
struct RowStart {
  RowStart(const QuantizedRows& x, std::int64_t row, std::int64_t k_begin) {
    const std::int64_t at = row * x.k + k_begin;
    q = x.q + at;
    scale = x.scale + at / 32;
    minus_sum = (kGroup == 32 ? x.minus_sum32 : x.minus_sum16) + at / kGroup;
    scaled_sum = (kGroup == 32 ? x.scaled_sum32 : x.scaled_sum16) + at / kGroup;
  }
  const std::int8_t* q;
  const float *scale, *scaled_sum;
  const std::int32_t* minus_sum;
};

// Asks for the lines that `rows` rows of both panels will be written to.
template <int kRows>
inline void ask_for(const Destination& out, int first) {
  if (!out.rows) return;
  WEIR_UNROLL
  for (int r = 0; r < kRows; ++r) {
    __builtin_prefetch(out.rows + (first + r) * out.stride, 1, 3);
    __builtin_prefetch(out.rows + (first + r) * out.stride + kPanelOuts, 1, 3);
  }
}
