// SPDX-License-Identifier: Apache-2.0
// Bytes for simd/unpack.inl: 16 bytes of each of eight rows. Register i holds those of rows i and i + 4.

constexpr int kRows = 8;

struct Bytes {
  __m256i w[4];
};

template <class Function>
inline Bytes each(Bytes x, Function f) {
  return {{f(x.w[0]), f(x.w[1]), f(x.w[2]), f(x.w[3])}};
}

inline __m128i load16(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline Bytes gather(const std::byte* const* rows, std::int64_t at) {
  Bytes b;
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) b.w[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(rows[i] + at)), load16(rows[i + 4] + at), 1);
  return b;
}
// Four bytes of each row, repeated over the part.
inline __m128i load4(const std::byte* p) {
  int bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return _mm_set1_epi32(bits);
}
inline Bytes gather4(const std::byte* const* rows, std::int64_t at) {
  Bytes b;
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) b.w[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load4(rows[i] + at)), load4(rows[i + 4] + at), 1);
  return b;
}

inline __m256i splat(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
inline Bytes operator&(Bytes x, __m256i m) {
  return each(x, [&](__m256i w) { return _mm256_and_si256(w, m); });
}
inline Bytes operator|(Bytes x, Bytes y) {
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) x.w[i] = _mm256_or_si256(x.w[i], y.w[i]);
  return x;
}
// Bits cross from byte to byte: mask the result (right) or the argument (left).
inline Bytes shift_right(Bytes x, int n) {
  return each(x, [&](__m256i w) { return _mm256_srl_epi16(w, _mm_cvtsi32_si128(n)); });
}
inline Bytes shift_left(Bytes x, int n) {
  return each(x, [&](__m256i w) { return _mm256_sll_epi16(w, _mm_cvtsi32_si128(n)); });
}
inline Bytes flip_sign(Bytes x) {
  return each(x, [](__m256i w) { return _mm256_xor_si256(w, _mm256_set1_epi8(-128)); });
}

// Bytes of all ones where bit i (0…15) of the 16-bit word that starts at byte `first` of the part is set, else zero.
inline Bytes spread_bits(Bytes x, int first) {
  const __m256i pick =
      _mm256_add_epi8(_mm256_set1_epi8(static_cast<char>(first)),
                      _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
  return each(x, [&](__m256i w) { return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(w, pick), bit), bit); });
}

// table[b] for b < 16.
inline Bytes look_up(__m128i table, Bytes x) {
  const __m256i both = _mm256_broadcastsi128_si256(table);
  return each(x, [&](__m256i w) { return _mm256_shuffle_epi8(both, w); });
}

inline void store_quads(std::uint8_t* q, Bytes b) {
  const __m256i t0 = _mm256_unpacklo_epi32(b.w[0], b.w[1]), t1 = _mm256_unpackhi_epi32(b.w[0], b.w[1]);
  const __m256i t2 = _mm256_unpacklo_epi32(b.w[2], b.w[3]), t3 = _mm256_unpackhi_epi32(b.w[2], b.w[3]);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm256_unpacklo_epi64(t0, t2));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 64), _mm256_unpackhi_epi64(t0, t2));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 128), _mm256_unpacklo_epi64(t1, t3));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 192), _mm256_unpackhi_epi64(t1, t3));
}
