// SPDX-License-Identifier: Apache-2.0
// V: sixteen floats, here two AVX registers. The kernels in simd/*.inl are written on V alone, so each lane computes the
// same whatever the instruction set. Included inside an anonymous namespace after target_begin.h.

struct V {
  __m256 a, b;
};

inline V set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline V zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline V load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, V v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
inline void store_past_caches(float* p, V v) {  // p: at the start of a line
  _mm256_stream_ps(p, v.a);
  _mm256_stream_ps(p + 8, v.b);
}

inline __m256i mask_below(std::int64_t n) {  // lanes [0, n) of eight
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
// The first n lanes, zeros beyond; n in [0, 16]. Nothing beyond is read.
inline V load_n(const float* p, std::int64_t n) {
  return {_mm256_maskload_ps(p, mask_below(n)), _mm256_maskload_ps(p + 8, mask_below(n - 8))};
}
inline void store_n(float* p, V v, std::int64_t n) {
  _mm256_maskstore_ps(p, mask_below(n), v.a);
  _mm256_maskstore_ps(p + 8, mask_below(n - 8), v.b);
}

// The first n lanes of v, zeros beyond.
inline V keep_n(V v, std::int64_t n) {
  return {_mm256_and_ps(v.a, _mm256_castsi256_ps(mask_below(n))), _mm256_and_ps(v.b, _mm256_castsi256_ps(mask_below(n - 8)))};
}

inline __m256 half8(const std::byte* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
inline __m256 bhalf8(const std::byte* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}
inline V load_f16(const std::byte* p) { return {half8(p), half8(p + 16)}; }
inline V load_bf16(const std::byte* p) { return {bhalf8(p), bhalf8(p + 16)}; }
inline __m256 byte8(const std::byte* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline V load_i8(const std::byte* p) { return {byte8(p), byte8(p + 8)}; }
inline void store_f16(std::byte* p, V v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 16), _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT));
}

inline __m256i to_bf16(__m256 v) {  // to nearest, ties to even; NaN stays NaN
  const __m256i bits = _mm256_castps_si256(v), high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(rounded, nan, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
}
inline __m256i pack_u16(__m256i a, __m256i b) { return _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8); }
inline void store_bf16(std::byte* p, V v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), pack_u16(to_bf16(v.a), to_bf16(v.b))); }

// Sixteen pairs of halves: the first of each (low), the second (high), as bf16.
inline V low_bf16(const std::byte* p) {
  const auto* from = reinterpret_cast<const __m256i*>(p);
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(from), 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(from + 1), 16))};
}
inline V high_bf16(const std::byte* p) {
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000u)));
  const V pairs = load(reinterpret_cast<const float*>(p));
  return {_mm256_and_ps(pairs.a, mask), _mm256_and_ps(pairs.b, mask)};
}
// Stores the first halves of sixteen pairs, then the second ones; and pairs made of sixteen halves at each of two places.
inline void store_unzipped(std::byte* p, V pairs) {
  const __m256i a = _mm256_castps_si256(pairs.a), b = _mm256_castps_si256(pairs.b), mask = _mm256_set1_epi32(0xffff);
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(to, pack_u16(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask)));
  _mm256_storeu_si256(to + 1, pack_u16(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16)));
}
inline void store_zipped(std::byte* p, const std::byte* first, const std::byte* second) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second));
  const __m256i low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
}

inline V operator+(V x, V y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline V operator-(V x, V y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline V operator*(V x, V y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline V operator/(V x, V y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline V fma(V x, V y, V z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
// The second operand when either is NaN.
inline V min(V x, V y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline V max(V x, V y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline V abs(V x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
inline V copy_sign(V magnitude, V from) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(magnitude.a, _mm256_and_ps(sign, from.a)), _mm256_or_ps(magnitude.b, _mm256_and_ps(sign, from.b))};
}
// x < y ? yes : no
inline V choose_less(V x, V y, V yes, V no) {
  return {_mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
          _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))};
}
inline bool any_less(V x, V y) {
  return _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))) != 0;
}
inline V round(V x) {
  return {_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

// x · 2^n for integral n in [-252, 254]: two steps, so that results may be subnormal or infinite.
inline __m256 scale8(__m256 x, __m256 n) {
  const __m256i whole = _mm256_cvtps_epi32(n), first = _mm256_srai_epi32(whole, 1), second = _mm256_sub_epi32(whole, first);
  const __m256i bias = _mm256_set1_epi32(127);
  x = _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(first, bias), 23)));
  return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(second, bias), 23)));
}
inline V scale_by_power(V x, V n) { return {scale8(x.a, n.a), scale8(x.b, n.b)}; }

// Sums of all lanes in one fixed order: halves onto halves.
inline float sum8(__m256 x) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}
inline float sum(V x) { return sum8(_mm256_add_ps(x.a, x.b)); }
inline float largest(V x) {
  const __m256 m = _mm256_max_ps(x.a, x.b);
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}

inline float first_lane(V x) { return _mm256_cvtss_f32(x.a); }
// Lanes are integers in [-128, 127].
inline void store_i8(std::int8_t* p, V x) {
  const __m256i pairs = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));  // a0 b0 a1 b1, in fours
  const __m256i ordered = _mm256_permute4x64_epi64(pairs, 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
}

// Sixteen sums in double, for norms.
struct Doubles {
  __m256d d[4];
};
inline Doubles zero_doubles() { return {{_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()}}; }
inline Doubles widen(V x) {
  return {{_mm256_cvtps_pd(_mm256_castps256_ps128(x.a)), _mm256_cvtps_pd(_mm256_extractf128_ps(x.a, 1)),
           _mm256_cvtps_pd(_mm256_castps256_ps128(x.b)), _mm256_cvtps_pd(_mm256_extractf128_ps(x.b, 1))}};
}
inline Doubles add(Doubles s, Doubles x) {
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) s.d[i] = _mm256_add_pd(s.d[i], x.d[i]);
  return s;
}
inline Doubles add_squares(Doubles s, Doubles x) {
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) s.d[i] = _mm256_fmadd_pd(x.d[i], x.d[i], s.d[i]);
  return s;
}
inline double sum(Doubles s) {
  const __m256d four = _mm256_add_pd(_mm256_add_pd(s.d[0], s.d[2]), _mm256_add_pd(s.d[1], s.d[3]));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

// The transpose of 16 rows of 16 floats: out[d · out_stride + row].
inline void transpose8(const __m256* rows, float* out, std::int64_t out_stride) {
  __m256 t[8], u[8];
  WEIR_UNROLL
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  WEIR_UNROLL
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  WEIR_UNROLL
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(out + i * out_stride, _mm256_permute2f128_ps(u[i], u[i + 4], 0x20));
    _mm256_storeu_ps(out + (i + 4) * out_stride, _mm256_permute2f128_ps(u[i], u[i + 4], 0x31));
  }
}
inline void transpose16(const V* rows, float* out, std::int64_t out_stride) {
  for (int half = 0; half < 2; ++half) {
    __m256 part[8];
    WEIR_UNROLL
    for (int i = 0; i < 8; ++i) part[i] = rows[half * 8 + i].a;
    transpose8(part, out + half * 8, out_stride);
    WEIR_UNROLL
    for (int i = 0; i < 8; ++i) part[i] = rows[half * 8 + i].b;
    transpose8(part, out + 8 * out_stride + half * 8, out_stride);
  }
}

// Sixteen outputs of four bytes; byte i of each as floats.
struct Quads {
  __m256i a, b;
};
inline Quads load_quads(const std::uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
template <int i>
inline V quad_byte(Quads q) {
  const __m256i low = _mm256_set1_epi32(255);
  return {_mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(q.a, 8 * i), low)),
          _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(q.b, 8 * i), low))};
}

// Lanes 0, 2, 4, … of x then y; lanes 1, 3, 5, …; and back: lanes of a and b in turn, the first and the last eight of each.
template <int kPick>
inline __m256 every_other(__m256 x, __m256 y) {
  const __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(x, y, kPick));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, 0xd8));
}
inline V evens(V x, V y) { return {every_other<0x88>(x.a, x.b), every_other<0x88>(y.a, y.b)}; }
inline V odds(V x, V y) { return {every_other<0xdd>(x.a, x.b), every_other<0xdd>(y.a, y.b)}; }
inline V alternate8(__m256 a, __m256 b) {
  const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}
inline V alternate_low(V a, V b) { return alternate8(a.a, b.a); }
inline V alternate_high(V a, V b) { return alternate8(a.b, b.b); }
