// SPDX-License-Identifier: Apache-2.0
// exp, tanh, erf on V, relative error about 1e-7. Polynomials were fitted for these intervals (Chebyshev, in double).

inline V exp(V x) {
  x = min(set1(130.0f), max(set1(-150.0f), x));  // beyond, the result is infinite or 0 anyway; NaN passes through
  const V n = round(x * set1(1.44269504f));
  V r = fma(n, set1(-0.693359375f), x);  // ln 2 in two parts, the first exact in few bits
  r = fma(n, set1(2.12194440e-4f), r);
  V g = fma(set1(1.3933733209e-03f), r, set1(8.3632353846e-03f));
  g = fma(g, r, set1(4.1666464167e-02f));
  g = fma(g, r, set1(1.6666576644e-01f));
  g = fma(g, r, set1(5.0000000135e-01f));
  return scale_by_power(fma(r * r, g, r) + set1(1.0f), n);
}

inline V sigmoid(V x) { return set1(1.0f) / (set1(1.0f) + exp(zero() - x)); }

inline V tanh(V x) {
  const V magnitude = abs(x), u = x * x;
  V h = fma(set1(-6.6310509577e-03f), u, set1(2.1320808500e-02f));
  h = fma(h, u, set1(-5.3911367925e-02f));
  h = fma(h, u, set1(1.3333124151e-01f));
  h = fma(h, u, set1(-3.3333332094e-01f));
  const V small = fma(magnitude * u, h, magnitude);
  const V large = set1(1.0f) - set1(2.0f) / (exp(magnitude + magnitude) + set1(1.0f));
  return copy_sign(choose_less(u, set1(0.3f), small, large), x);
}

// erfc(z) for z ≥ 0: t · exp(-z²) · q(t) with t = 1 / (1 + z/2).
inline V erfc_positive(V z) {
  constexpr float kQ[] = {2.6612855754e-02f,  -1.3621402762e-01f, 2.3730597813e-01f,  -7.0987635427e-02f,
                          -2.3342948155e-01f, 1.7144432229e-01f,  -3.9411667643e-03f, 2.0244062588e-01f,
                          2.4212594854e-01f,  2.8256820498e-01f,  2.8207437707e-01f};
  const V t = set1(1.0f) / fma(z, set1(0.5f), set1(1.0f));
  V q = set1(kQ[0]);
  for (int i = 1; i < 11; ++i) q = fma(q, t, set1(kQ[i]));
  return t * exp(zero() - z * z) * q;
}
