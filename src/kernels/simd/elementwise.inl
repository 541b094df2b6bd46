// SPDX-License-Identifier: Apache-2.0
// Norms, activations and loops over single elements, on V. The last few elements of a row go through partial loads, so
// that an element's result does not depend on where it stands.

template <class Function>
inline void for_each_part(std::int64_t n, Function body) {  // body(begin, count): count is 16 but for the last
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, 16);
  if (i < n) body(i, n - i);
}
inline V load_part(const float* p, std::int64_t count) { return count == 16 ? load(p) : load_n(p, count); }
inline void store_part(float* p, V v, std::int64_t count) { count == 16 ? store(p, v) : store_n(p, v, count); }

inline void rms_norm(const NormRow& row) {
  Doubles squares = zero_doubles();
  for_each_part(row.n, [&](std::int64_t i, std::int64_t count) { squares = add_squares(squares, widen(load_part(row.x + i, count))); });
  const V inverse =
      set1(static_cast<float>(1.0 / __builtin_sqrt(sum(squares) / static_cast<double>(row.n) + static_cast<double>(row.epsilon))));
  for_each_part(row.n, [&](std::int64_t i, std::int64_t count) {
    V y = load_part(row.x + i, count) * inverse;
    if (row.weight) y = y * load_part(row.weight + i, count);
    if (row.bias) y = y + load_part(row.bias + i, count);
    store_part(row.out + i, y, count);
  });
}

inline void layer_norm(const NormRow& row) {
  Doubles total = zero_doubles();
  for_each_part(row.n, [&](std::int64_t i, std::int64_t count) { total = add(total, widen(load_part(row.x + i, count))); });
  const double mean = sum(total) / static_cast<double>(row.n);
  // Σ (x - m)² with the mean rounded to float, then corrected by n · (mean - m)².
  const auto rounded = static_cast<float>(mean);
  const V centre = set1(rounded);
  Doubles squares = zero_doubles();
  for_each_part(row.n, [&](std::int64_t i, std::int64_t count) {
    squares = add_squares(squares, widen(keep_n(load_part(row.x + i, count) - centre, count)));
  });
  const double off = mean - static_cast<double>(rounded);
  const double variance = sum(squares) / static_cast<double>(row.n) - off * off;
  const V inverse = set1(static_cast<float>(1.0 / __builtin_sqrt((variance > 0 ? variance : 0) + static_cast<double>(row.epsilon))));
  for_each_part(row.n, [&](std::int64_t i, std::int64_t count) {
    V y = (load_part(row.x + i, count) - centre) * inverse;
    if (row.weight) y = y * load_part(row.weight + i, count);
    if (row.bias) y = y + load_part(row.bias + i, count);
    store_part(row.out + i, y, count);
  });
}

template <class Function>
inline void map(const float* x, const float* factor, std::int64_t n, float* out, Function f) {
  for_each_part(n, [&](std::int64_t i, std::int64_t count) {
    V y = f(load_part(x + i, count));
    if (factor) y = y * load_part(factor + i, count);
    store_part(out + i, y, count);
  });
}

inline V silu(V x) { return x * sigmoid(x); }

// 0.5·x·(1 + tanh(u)) = x·σ(2u), u = sqrt(2/π)·(x + 0.044715·x³): without the cancellation for negative x.
inline V gelu_tanh(V x) {
  const V u = set1(0.7978845608028654f) * fma(set1(0.044715f) * x * x, x, x);
  return x * sigmoid(u + u);
}

inline V gelu_erf(V x) {
  const V tail = set1(0.5f) * erfc_positive(abs(x) * set1(0.7071067811865476f));
  return x * choose_less(x, zero(), tail, set1(1.0f) - tail);
}

inline void activate(Activation kind, const float* x, const float* factor, std::int64_t n, float* out) {
  switch (kind) {
    case Activation::kSilu: return map(x, factor, n, out, [](V v) { return silu(v); });
    case Activation::kGeluTanh: return map(x, factor, n, out, [](V v) { return gelu_tanh(v); });
    case Activation::kGeluErf: return map(x, factor, n, out, [](V v) { return gelu_erf(v); });
    case Activation::kRelu: return map(x, factor, n, out, [](V v) { return max(zero(), v); });
    case Activation::kReluSquared:
      return map(x, factor, n, out, [](V v) {
        const V p = max(zero(), v);
        return p * p;
      });
    case Activation::kSigmoid: return map(x, factor, n, out, [](V v) { return sigmoid(v); });
  }
}

inline void clamped_swiglu(const float* gate, const float* up, float alpha, float limit, std::int64_t n, float* out) {
  for_each_part(n, [&](std::int64_t i, std::int64_t count) {
    const V g = min(set1(limit), load_part(gate + i, count));
    const V u = min(set1(limit), max(set1(-limit), load_part(up + i, count)));
    store_part(out + i, g * sigmoid(set1(alpha) * g) * (u + set1(1.0f)), count);
  });
}

inline void add_scaled(const float* x, float factor, std::int64_t n, float* out) {
  for_each_part(n, [&](std::int64_t i, std::int64_t count) {
    store_part(out + i, fma(set1(factor), load_part(x + i, count), load_part(out + i, count)), count);
  });
}

inline void multiply(const float* x, std::int64_t n, float* out) {
  for_each_part(
      n, [&](std::int64_t i, std::int64_t count) { store_part(out + i, load_part(out + i, count) * load_part(x + i, count), count); });
}

inline V soft_cap(V x, V cap) { return cap * tanh(x / cap); }

inline void scale_row(float factor, float softcap, std::int64_t n, float* x) {
  for_each_part(n, [&](std::int64_t i, std::int64_t count) {
    V y = load_part(x + i, count) * set1(factor);
    if (softcap > 0) y = soft_cap(y, set1(softcap));
    store_part(x + i, y, count);
  });
}

inline void rope(float* x, const float* cosines, const float* sines, std::int64_t half, bool pairs) {
  if (pairs) {
    std::int64_t i = 0;
    for (; i + 16 <= half; i += 16) {
      const V first = load(x + 2 * i), second = load(x + 2 * i + 16), c = load(cosines + i), s = load(sines + i);
      const V a = evens(first, second), b = odds(first, second);
      const V turned_a = a * c - b * s, turned_b = a * s + b * c;
      store(x + 2 * i, alternate_low(turned_a, turned_b));
      store(x + 2 * i + 16, alternate_high(turned_a, turned_b));
    }
    return reference::rope(x + 2 * i, cosines + i, sines + i, half - i, pairs);
  }
  for_each_part(half, [&](std::int64_t i, std::int64_t count) {
    const V a = load_part(x + i, count), b = load_part(x + half + i, count);
    const V c = load_part(cosines + i, count), s = load_part(sines + i, count);
    store_part(x + i, a * c - b * s, count);
    store_part(x + half + i, a * s + b * c, count);
  });
}
