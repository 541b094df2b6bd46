// SPDX-License-Identifier: Apache-2.0
// Line for simd/expand.inl: 64 bytes, one quad of 16 outputs.

struct Line {
  __m512i w;
};

inline Line load_line(const std::byte* p) { return {_mm512_loadu_si512(p)}; }
inline void store_line(std::uint8_t* p, Line x) { _mm512_storeu_si512(p, x.w); }
inline Line operator&(Line x, int mask) { return {_mm512_and_si512(x.w, _mm512_set1_epi8(static_cast<char>(mask)))}; }
inline Line operator|(Line x, Line y) { return {_mm512_or_si512(x.w, y.w)}; }
// Bits cross from byte to byte: mask afterwards (right) or before (left).
template <int n>
inline Line right(Line x) {
  return {_mm512_srli_epi16(x.w, n)};
}
template <int n>
inline Line left(Line x) {
  return {_mm512_slli_epi16(x.w, n)};
}
inline Line look_up(__m128i table, Line x) { return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), x.w)}; }

inline V from_u8(const std::byte* p) { return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load16(p)))}; }
inline V from_i8(const std::byte* p) { return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load16(p)))}; }
inline V from_low_nibbles(const std::byte* p) {
  return {_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_cvtepu8_epi32(load16(p)), _mm512_set1_epi32(15)))};
}
inline V from_high_nibbles(const std::byte* p) { return {_mm512_cvtepi32_ps(_mm512_srli_epi32(_mm512_cvtepu8_epi32(load16(p)), 4))}; }
// mxfp4_scale of sixteen exponents.
inline V exponent_scale(const std::byte* p) {
  const __m512i e = _mm512_cvtepu8_epi32(load16(p)), one = _mm512_set1_epi32(1);
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23), tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
  return {_mm512_castsi512_ps(_mm512_mask_blend_epi32(_mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2)), normal, tiny))};
}
