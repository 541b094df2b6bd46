// SPDX-License-Identifier: Apache-2.0
// V as one AVX-512 register; see avx2/vec.inl, whose lanes and orders of sums these repeat.

struct V {
  __m512 v;
};

inline V set1(float x) { return {_mm512_set1_ps(x)}; }
inline V zero() { return {_mm512_setzero_ps()}; }
inline V load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, V v) { _mm512_storeu_ps(p, v.v); }
inline void store_past_caches(float* p, V v) { _mm512_stream_ps(p, v.v); }  // p: at the start of a line
inline __mmask16 mask_below(std::int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
inline V load_n(const float* p, std::int64_t n) { return {_mm512_maskz_loadu_ps(mask_below(n), p)}; }
inline void store_n(float* p, V v, std::int64_t n) { _mm512_mask_storeu_ps(p, mask_below(n), v.v); }

inline V keep_n(V v, std::int64_t n) { return {_mm512_maskz_mov_ps(mask_below(n), v.v)}; }

inline V load_f16(const std::byte* p) { return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))}; }
inline V load_bf16(const std::byte* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16))};
}
inline V load_i8(const std::byte* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline void store_f16(std::byte* p, V v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline void store_bf16(std::byte* p, V v) {  // to nearest, ties to even; NaN stays NaN
  const __m512i bits = _mm512_castps_si512(v.v), high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  const __m512i nan = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const __m512i halves = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(v.v, v.v, _CMP_UNORD_Q), rounded, nan);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(halves));
}

// Sixteen pairs of halves: the first of each (low), the second (high), as bf16.
inline V low_bf16(const std::byte* p) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))}; }
inline V high_bf16(const std::byte* p) {
  return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
}
// Stores the first halves of sixteen pairs, then the second ones; and pairs made of sixteen halves at each of two places.
inline void store_unzipped(std::byte* p, V pairs) {
  const __m512i x = _mm512_castps_si512(pairs.v);
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(to, _mm512_cvtepi32_epi16(x));
  _mm256_storeu_si256(to + 1, _mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)));
}
inline void store_zipped(std::byte* p, const std::byte* first, const std::byte* second) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)));
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(second)));
  _mm512_storeu_si512(p, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

inline V operator+(V x, V y) { return {_mm512_add_ps(x.v, y.v)}; }
inline V operator-(V x, V y) { return {_mm512_sub_ps(x.v, y.v)}; }
inline V operator*(V x, V y) { return {_mm512_mul_ps(x.v, y.v)}; }
inline V operator/(V x, V y) { return {_mm512_div_ps(x.v, y.v)}; }
inline V fma(V x, V y, V z) { return {_mm512_fmadd_ps(x.v, y.v, z.v)}; }
inline V min(V x, V y) { return {_mm512_min_ps(x.v, y.v)}; }
inline V max(V x, V y) { return {_mm512_max_ps(x.v, y.v)}; }
inline V abs(V x) { return {_mm512_abs_ps(x.v)}; }
inline V copy_sign(V magnitude, V from) { return {_mm512_or_ps(magnitude.v, _mm512_and_ps(_mm512_set1_ps(-0.0f), from.v))}; }
inline V choose_less(V x, V y, V yes, V no) { return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ), no.v, yes.v)}; }
inline bool any_less(V x, V y) { return _mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ) != 0; }
inline V round(V x) { return {_mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline V scale_by_power(V x, V n) {
  const __m512i whole = _mm512_cvtps_epi32(n.v), first = _mm512_srai_epi32(whole, 1), second = _mm512_sub_epi32(whole, first);
  const __m512i bias = _mm512_set1_epi32(127);
  const __m512 half = _mm512_mul_ps(x.v, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(first, bias), 23)));
  return {_mm512_mul_ps(half, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(second, bias), 23)))};
}

inline __m256 low8(__m512 x) { return _mm512_castps512_ps256(x); }
inline __m256 high8(__m512 x) { return _mm512_extractf32x8_ps(x, 1); }
inline float sum(V x) {
  const __m256 eight = _mm256_add_ps(low8(x.v), high8(x.v));
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
inline float largest(V x) {
  const __m256 m = _mm256_max_ps(low8(x.v), high8(x.v));
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}

inline float first_lane(V x) { return _mm512_cvtss_f32(x.v); }
inline void store_i8(std::int8_t* p, V x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x.v)));
}

struct Doubles {
  __m512d d[2];
};
inline Doubles zero_doubles() { return {{_mm512_setzero_pd(), _mm512_setzero_pd()}}; }
inline Doubles widen(V x) { return {{_mm512_cvtps_pd(low8(x.v)), _mm512_cvtps_pd(high8(x.v))}}; }
inline Doubles add(Doubles s, Doubles x) { return {{_mm512_add_pd(s.d[0], x.d[0]), _mm512_add_pd(s.d[1], x.d[1])}}; }
inline Doubles add_squares(Doubles s, Doubles x) {
  return {{_mm512_fmadd_pd(x.d[0], x.d[0], s.d[0]), _mm512_fmadd_pd(x.d[1], x.d[1], s.d[1])}};
}
inline double sum(Doubles s) {
  const __m512d eight = _mm512_add_pd(s.d[0], s.d[1]);
  const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

inline void transpose16(const V* rows, float* out, std::int64_t out_stride) {
  __m512 t[16], u[16];
  WEIR_UNROLL
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v);
    t[i + 1] = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
  }
  WEIR_UNROLL
  for (int i = 0; i < 16; i += 4) {
    u[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  // u[4j + i] holds, in its four 128-bit parts q, column 4q + i of rows 4j … 4j + 3.
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512 a = _mm512_shuffle_f32x4(u[i], u[4 + i], 0x88), b = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0x88);
    const __m512 c = _mm512_shuffle_f32x4(u[i], u[4 + i], 0xdd), d = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0xdd);
    _mm512_storeu_ps(out + i * out_stride, _mm512_shuffle_f32x4(a, b, 0x88));
    _mm512_storeu_ps(out + (8 + i) * out_stride, _mm512_shuffle_f32x4(a, b, 0xdd));
    _mm512_storeu_ps(out + (4 + i) * out_stride, _mm512_shuffle_f32x4(c, d, 0x88));
    _mm512_storeu_ps(out + (12 + i) * out_stride, _mm512_shuffle_f32x4(c, d, 0xdd));
  }
}

struct Quads {
  __m512i q;
};
inline Quads load_quads(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
template <int i>
inline V quad_byte(Quads x) {
  return {_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(x.q, 8 * i), _mm512_set1_epi32(255)))};
}

// Lanes 0, 2, 4, … of x then y; lanes 1, 3, 5, …; and back: lanes of a and b in turn, the first and the last eight of each.
inline __m512i lane_numbers() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
inline V evens(V x, V y) { return {_mm512_permutex2var_ps(x.v, _mm512_slli_epi32(lane_numbers(), 1), y.v)}; }
inline V odds(V x, V y) {
  return {_mm512_permutex2var_ps(x.v, _mm512_add_epi32(_mm512_slli_epi32(lane_numbers(), 1), _mm512_set1_epi32(1)), y.v)};
}
inline V alternate_low(V a, V b) {
  return {_mm512_permutex2var_ps(a.v, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b.v)};
}
inline V alternate_high(V a, V b) {
  return {_mm512_permutex2var_ps(a.v, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b.v)};
}
