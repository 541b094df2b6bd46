// SPDX-License-Identifier: Apache-2.0
// Words for simd/attention.inl that are pairs of BF16.

inline __m512i round_pairs(V low, V high) { return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v)); }

struct PairWords {
  using Lanes = __m512i;
  using Weight = std::uint16_t;
  static constexpr int kBytes = 4, kValueRows = kKvTile / 2;
  static Lanes lanes(const std::byte* p) { return _mm512_loadu_si512(p); }
  static Lanes some_lanes(const std::byte* p, std::int64_t n) { return _mm512_maskz_loadu_epi32(mask_below(n), p); }
  static Lanes spread(const void* p) {
    int pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return _mm512_set1_epi32(pair);
  }
  static Lanes spread_weight(const Weight* p, int row) { return spread(p + 2 * row); }
  static V dot(V acc, Lanes x, Lanes y) { return {_mm512_dpbf16_ps(acc.v, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y))}; }
  // 2^x within 8e-5, a small part of what rounding to BF16 loses: a polynomial of x - floor(x), scaled by 2^floor(x).
  static V weight_of(V x) {
    const __m512 y = _mm512_max_ps(_mm512_set1_ps(-200.0f), x.v), r = _mm512_reduce_ps(y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(7.8024522690e-02f), r, _mm512_set1_ps(2.2606715540e-01f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.9583354048e-01f));
    return {_mm512_scalef_ps(_mm512_fmadd_ps(p, r, _mm512_set1_ps(9.9992521857e-01f)), y)};
  }
  static void put_weights(Weight* p, V low, V high) { _mm512_storeu_si512(p, round_pairs(low, high)); }
};
