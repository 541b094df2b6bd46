// SPDX-License-Identifier: Apache-2.0
// Recurrent layers on V: one row at a time, channels or state dimensions as lanes.

inline void conv_row(const ConvRow& row, const ConvParams& params) {
  const int past = params.taps - 1;
  for (std::int64_t c = row.begin; c < row.end; c += 16) {
    const std::int64_t count = row.end - c < 16 ? row.end - c : 16;
    alignas(64) float sums[16] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      const float* weight = params.weight + (c + i) * params.taps;
      float total = params.bias ? params.bias[c + i] : 0.0f;
      for (int t = 0; t < past; ++t) total += weight[t] * row.history[t * row.history_stride + c + i];
      sums[i] = total + weight[past] * row.x[c + i];
    }
    const V newest = load_part(row.x + c, count), y = load(sums);
    for (int t = 0; t + 1 < past; ++t)
      store_part(row.history + t * row.history_stride + c, load_part(row.history + (t + 1) * row.history_stride + c, count), count);
    if (past > 0) store_part(row.history + (past - 1) * row.history_stride + c, newest, count);
    store_part(row.out + c, params.silu ? silu(y) : y, count);
  }
}

inline void ssd_step(const SsdStep& s) {
  for (std::int64_t i = 0; i < s.head_dim; ++i) {
    float* h = s.state + i * s.n;
    const V input = set1(s.dt * s.x[i]), decay = set1(s.decay);
    V total = zero();
    for_each_part(s.n, [&](std::int64_t j, std::int64_t count) {
      const V next = fma(input, load_part(s.b + j, count), decay * load_part(h + j, count));
      store_part(h + j, next, count);
      total = fma(next, load_part(s.c + j, count), total);
    });
    s.out[i] = sum(total) + s.d * s.x[i];
  }
}

inline void delta_step(const DeltaStep& s) {
  for_each_part(s.value_dim, [&](std::int64_t j, std::int64_t count) {
    V found = zero();
    for (std::int64_t i = 0; i < s.key_dim; ++i) {
      float* at = s.state + i * s.value_dim + j;
      const V decayed = load_part(at, count) * set1(s.decay);
      store_part(at, decayed, count);
      found = fma(set1(s.k[i]), decayed, found);
    }
    const V change = set1(s.beta) * (load_part(s.v + j, count) - found);
    V out = zero();
    for (std::int64_t i = 0; i < s.key_dim; ++i) {
      float* at = s.state + i * s.value_dim + j;
      const V next = fma(set1(s.k[i]), change, load_part(at, count));
      store_part(at, next, count);
      out = fma(set1(s.q[i]), next, out);
    }
    store_part(s.out + j, out, count);
  });
}
