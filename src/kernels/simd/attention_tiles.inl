// SPDX-License-Identifier: Apache-2.0
// What surrounds a step of attention, on V: words that are floats or F16, rows into tiles, merging and finishing of sums.

// 2^x for x ≤ 120, relative error 1e-7 (minimax polynomial of the fraction, fitted in double).
inline V exp2_exact(V x) {
  x = max(set1(-160.0f), x);  // below, the result is 0 anyway; NaN passes through
  const V n = round(x), r = x - n;
  V p = fma(set1(1.3276472168e-03f), r, set1(9.6755413310e-03f));
  p = fma(p, r, set1(5.5507132729e-02f));
  p = fma(p, r, set1(2.4022119724e-01f));
  p = fma(p, r, set1(6.9314696707e-01f));
  p = fma(p, r, set1(1.0000000717e+00f));
  return scale_by_power(p, n);
}

struct FloatWords {
  using Lanes = V;
  using Weight = float;
  static constexpr int kBytes = 4, kValueRows = kKvTile;
  static V lanes(const std::byte* p) { return load(reinterpret_cast<const float*>(p)); }
  static V some_lanes(const std::byte* p, std::int64_t n) { return load_n(reinterpret_cast<const float*>(p), n); }
  static V spread(const float* p) { return set1(*p); }
  static V spread_weight(const float* p, int row) { return set1(p[row]); }
  static V dot(V acc, V x, V y) { return fma(x, y, acc); }
  static V weight_of(V x) { return exp2_exact(x); }
  static void put_weights(float* p, V low, V high) {
    store(p, low);
    store(p + 16, high);
  }
};

struct HalfWords : FloatWords {
  static constexpr int kBytes = 2;
  static V lanes(const std::byte* p) { return load_f16(p); }
  static V some_lanes(const std::byte* p, std::int64_t n) {
    if (n == 16) return load_f16(p);
    std::byte part[32] = {};
    __builtin_memcpy(part, p, static_cast<std::size_t>(2 * n));
    return load_f16(part);
  }
};

inline void pack_query(const float* q, std::int64_t dim, float scale, float* out) {
  for (std::int64_t d = 0; d < dim; d += 16) {
    const std::int64_t here = dim - d < 16 ? dim - d : 16;
    store_n(out + d, load_n(q + d, here) * set1(scale), here);
  }
}

// out[d][16] = rows[0 … 16)[d]
inline void transpose_rows(const float* rows, std::int64_t stride, int count, std::int64_t dim, float* out) {
  for (std::int64_t d = 0; d < dim; d += 16) {
    const std::int64_t here = dim - d < 16 ? dim - d : 16;
    V square[16];
    WEIR_UNROLL
    for (int i = 0; i < 16; ++i) square[i] = i < count ? load_n(rows + i * stride + d, here) : zero();
    if (here == 16) {
      transpose16(square, out + d * 16, 16);
      continue;
    }
    alignas(64) float turned[256];
    transpose16(square, turned, 16);
    for (std::int64_t i = 0; i < here; ++i) store(out + (d + i) * 16, load(turned + i * 16));
  }
}

inline void pack_keys(const TileRows& t, std::byte* tile) {
  transpose_rows(t.rows, t.stride, t.count, t.dim, reinterpret_cast<float*>(tile));
}

inline void pack_values(const TileRows& t, std::byte* tile) {
  auto* out = reinterpret_cast<float*>(tile);
  for (int i = 0; i < kKvTile; ++i, out += t.dim) {
    for (std::int64_t d = 0; d < t.dim; d += 16) {
      const std::int64_t here = t.dim - d < 16 ? t.dim - d : 16;
      store_n(out + d, i < t.count ? load_n(t.rows + i * t.stride + d, here) : zero(), here);
    }
  }
}

inline void q8_0_row(const std::byte* row, std::int64_t dim, float* out) {
  for (std::int64_t d = 0; d < dim; d += 32, row += 34) {
    const V scale = set1(first_lane(load_f16(row)));
    store(out + d, load_i8(row + 2) * scale);
    store(out + d + 16, load_i8(row + 18) * scale);
  }
}

inline void split_pairs(const std::byte* words, std::int64_t rows, std::int64_t n, float* out) {
  for (std::int64_t r = 0; r < rows; ++r, words += 4 * n, out += 2 * n) {
    for (std::int64_t i = 0; i < n; i += 16) {
      const std::int64_t here = n - i < 16 ? n - i : 16;
      alignas(64) std::byte part[64] = {};
      const std::byte* from = words + 4 * i;
      if (here < 16) from = static_cast<const std::byte*>(__builtin_memcpy(part, from, static_cast<std::size_t>(4 * here)));
      store_n(out + i, low_bf16(from), here);
      store_n(out + n + i, high_bf16(from), here);
    }
  }
}

// [dim][16] back to [16][dim].
inline void untranspose(const float* tile, std::int64_t dim, float* rows) {
  for (std::int64_t d = 0; d < dim; d += 16) {
    const std::int64_t here = dim - d < 16 ? dim - d : 16;
    V square[16];
    alignas(64) float turned[256];
    WEIR_UNROLL
    for (int i = 0; i < 16; ++i) square[i] = i < here ? load(tile + (d + i) * 16) : zero();
    if (here == 16) {
      transpose16(square, rows + d, dim);
      continue;
    }
    transpose16(square, turned, 16);
    for (int i = 0; i < 16; ++i) store_n(rows + i * dim + d, load(turned + i * 16), here);
  }
}

inline void key_rows(KvWord word, const std::byte* tile, std::int64_t dim, float* rows) {
  if (word == KvWord::kF32) return untranspose(reinterpret_cast<const float*>(tile), dim, rows);
  alignas(64) float part[32 * kKvTile];  // a few dimensions at a time
  for (std::int64_t d = 0; d < dim; d += 32) {
    const std::int64_t here = dim - d < 32 ? dim - d : 32;
    if (word == KvWord::kF16) {
      for (std::int64_t i = 0; i < here; ++i) store(part + i * kKvTile, load_f16(tile + (d + i) * kKvTile * 2));
    } else {
      split_pairs(tile + d * kKvTile * 2, (here + 1) / 2, kKvTile, part);
    }
    alignas(64) float turned[kKvTile * 32];
    untranspose(part, here, turned);
    for (int i = 0; i < kKvTile; ++i)
      for (std::int64_t j = 0; j < here; j += 16)
        store_n(rows + i * dim + d + j, load_n(turned + i * here + j, here - j < 16 ? here - j : 16), here - j < 16 ? here - j : 16);
  }
}

inline void merge(const AttentionSums& total, const AttentionSums& part, std::int64_t dim) {
  if (*part.max == -__builtin_inff()) return;  // it saw nothing
  const float before = *total.max, most = before > *part.max ? before : *part.max;
  if (before == -__builtin_inff()) {  // so far it saw nothing: as if it began here, since 2^0 is not exactly 1 below
    *total.max = most;
    store(total.weights, load(part.weights));
    for (std::int64_t d = 0; d < dim; d += 16) store(total.acc + d, load(part.acc + d));
    return;
  }
  const V a = exp2_exact(set1(before - most)), b = exp2_exact(set1(*part.max - most));
  *total.max = most;
  store(total.weights, load(total.weights) * a + load(part.weights) * b);
  for (std::int64_t d = 0; d < dim; d += 16) store(total.acc + d, load(total.acc + d) * a + load(part.acc + d) * b);
}

inline void finish(const AttentionSums& sums, const float* sink, std::int64_t dim, float* out) {
  V factor = set1(1.0f);
  float total = sum(load(sums.weights));
  if (sink) {
    const float most = *sums.max > *sink ? *sums.max : *sink;
    factor = exp2_exact(set1(*sums.max - most));
    total = total * first_lane(factor) + first_lane(exp2_exact(set1(*sink - most)));
  }
  factor = factor / set1(total);
  for (std::int64_t d = 0; d < dim; d += 16) {
    const std::int64_t here = dim - d < 16 ? dim - d : 16;
    store_n(out + d, load(sums.acc + d) * factor, here);
  }
}
