// SPDX-License-Identifier: Apache-2.0
// Bytes for simd/unpack.inl: 16 bytes of each of sixteen rows. Register i holds those of rows i, i + 4, i + 8 and i + 12.

constexpr int kRows = 16;

struct Bytes {
  __m512i w[4];
};

template <class Function>
inline Bytes each(Bytes x, Function f) {
  return {{f(x.w[0]), f(x.w[1]), f(x.w[2]), f(x.w[3])}};
}

inline __m128i load16(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline __m128i load4(const std::byte* p) {
  int bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return _mm_set1_epi32(bits);
}
template <class Load>
inline Bytes gather_parts(const std::byte* const* rows, std::int64_t at, Load load_part16) {
  Bytes b;
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(load_part16(rows[i] + at)), load_part16(rows[i + 4] + at), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load_part16(rows[i + 8] + at)), load_part16(rows[i + 12] + at), 1);
    b.w[i] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  return b;
}
inline Bytes gather(const std::byte* const* rows, std::int64_t at) {
  return gather_parts(rows, at, [](const std::byte* p) { return load16(p); });
}
inline Bytes gather4(const std::byte* const* rows, std::int64_t at) {
  return gather_parts(rows, at, [](const std::byte* p) { return load4(p); });
}

inline __m512i splat(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
inline Bytes operator&(Bytes x, __m512i m) {
  return each(x, [&](__m512i w) { return _mm512_and_si512(w, m); });
}
inline Bytes operator|(Bytes x, Bytes y) {
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) x.w[i] = _mm512_or_si512(x.w[i], y.w[i]);
  return x;
}
inline Bytes shift_right(Bytes x, int n) {
  return each(x, [&](__m512i w) { return _mm512_srl_epi16(w, _mm_cvtsi32_si128(n)); });
}
inline Bytes shift_left(Bytes x, int n) {
  return each(x, [&](__m512i w) { return _mm512_sll_epi16(w, _mm_cvtsi32_si128(n)); });
}
inline Bytes flip_sign(Bytes x) {
  return each(x, [](__m512i w) { return _mm512_xor_si512(w, _mm512_set1_epi8(-128)); });
}

inline Bytes spread_bits(Bytes x, int first) {
  const __m512i pick = _mm512_add_epi8(_mm512_set1_epi8(static_cast<char>(first)), _mm512_set4_epi32(0x01010101, 0x01010101, 0, 0));
  const __m512i bit = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201ULL));
  return each(x, [&](__m512i w) { return _mm512_movm_epi8(_mm512_test_epi8_mask(_mm512_shuffle_epi8(w, pick), bit)); });
}

inline Bytes look_up(__m128i table, Bytes x) {
  const __m512i all = _mm512_broadcast_i32x4(table);
  return each(x, [&](__m512i w) { return _mm512_shuffle_epi8(all, w); });
}

inline void store_quads(std::uint8_t* q, Bytes b) {
  const __m512i t0 = _mm512_unpacklo_epi32(b.w[0], b.w[1]), t1 = _mm512_unpackhi_epi32(b.w[0], b.w[1]);
  const __m512i t2 = _mm512_unpacklo_epi32(b.w[2], b.w[3]), t3 = _mm512_unpackhi_epi32(b.w[2], b.w[3]);
  _mm512_storeu_si512(q, _mm512_unpacklo_epi64(t0, t2));
  _mm512_storeu_si512(q + 64, _mm512_unpackhi_epi64(t0, t2));
  _mm512_storeu_si512(q + 128, _mm512_unpacklo_epi64(t1, t3));
  _mm512_storeu_si512(q + 192, _mm512_unpackhi_epi64(t1, t3));
}
