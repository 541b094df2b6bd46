// SPDX-License-Identifier: Apache-2.0
// Line for simd/expand.inl: 64 bytes, one quad of 16 outputs, in two registers.

struct Line {
  __m256i w[2];
};

inline Line load_line(const std::byte* p) {
  const auto* from = reinterpret_cast<const __m256i*>(p);
  return {{_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)}};
}
inline void store_line(std::uint8_t* p, Line x) {
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(to, x.w[0]);
  _mm256_storeu_si256(to + 1, x.w[1]);
}
inline Line operator&(Line x, int mask) {
  const __m256i m = _mm256_set1_epi8(static_cast<char>(mask));
  return {{_mm256_and_si256(x.w[0], m), _mm256_and_si256(x.w[1], m)}};
}
inline Line operator|(Line x, Line y) { return {{_mm256_or_si256(x.w[0], y.w[0]), _mm256_or_si256(x.w[1], y.w[1])}}; }
// Bits cross from byte to byte: mask afterwards (right) or before (left).
template <int n>
inline Line right(Line x) {
  return {{_mm256_srli_epi16(x.w[0], n), _mm256_srli_epi16(x.w[1], n)}};
}
template <int n>
inline Line left(Line x) {
  return {{_mm256_slli_epi16(x.w[0], n), _mm256_slli_epi16(x.w[1], n)}};
}
inline Line look_up(__m128i table, Line x) {
  const __m256i both = _mm256_broadcastsi128_si256(table);
  return {{_mm256_shuffle_epi8(both, x.w[0]), _mm256_shuffle_epi8(both, x.w[1])}};
}

inline V from_integers(__m256i low, __m256i high) { return {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)}; }
inline __m256i eight_u8(const std::byte* p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
inline __m256i eight_i8(const std::byte* p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
inline V from_u8(const std::byte* p) { return from_integers(eight_u8(p), eight_u8(p + 8)); }
inline V from_i8(const std::byte* p) { return from_integers(eight_i8(p), eight_i8(p + 8)); }
inline V from_low_nibbles(const std::byte* p) {
  const __m256i mask = _mm256_set1_epi32(15);
  return from_integers(_mm256_and_si256(eight_u8(p), mask), _mm256_and_si256(eight_u8(p + 8), mask));
}
inline V from_high_nibbles(const std::byte* p) {
  return from_integers(_mm256_srli_epi32(eight_u8(p), 4), _mm256_srli_epi32(eight_u8(p + 8), 4));
}
// mxfp4_scale of eight and of sixteen exponents.
inline __m256 eight_exponent_scales(__m256i e) {
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
  const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
  return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, tiny, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}
inline V exponent_scale(const std::byte* p) { return {eight_exponent_scales(eight_u8(p)), eight_exponent_scales(eight_u8(p + 8))}; }
