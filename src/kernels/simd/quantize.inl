// SPDX-License-Identifier: Apache-2.0
// Activations to int8, block after block, on V.

// The arithmetic is that of reference::quantize_row.
inline void quantize_row(const float* x, std::int64_t row, const QuantizedRows& out) {
  for (std::int64_t b = 0; b < out.inputs / 32; ++b) {
    const V low = load(x + b * 32), high = load(x + b * 32 + 16);
    const float top = largest(max(abs(low), abs(high)));
    const bool flat = top < kSmallestBlock;
    const float scale = flat ? 0.0f : top / 127.0f;
    const V inverse = set1(flat ? 0.0f : 127.0f / top), limit = set1(127.0f), lower = set1(-127.0f);
    const V q0 = min(max(round(low * inverse), lower), limit), q1 = min(max(round(high * inverse), lower), limit);
    std::int8_t* q = out.q + row * out.k + b * 32;
    store_i8(q, q0);
    store_i8(q + 16, q1);
    const float s0 = sum(q0), s1 = sum(q1);  // small integers: exact
    const std::int64_t at = row * (out.k / 32) + b;
    out.scale[at] = scale;
    out.minus_sum32[at] = -static_cast<std::int32_t>(s0 + s1);
    out.scaled_sum32[at] = scale * (s0 + s1);
    out.minus_sum16[2 * at] = -static_cast<std::int32_t>(s0);
    out.minus_sum16[2 * at + 1] = -static_cast<std::int32_t>(s1);
    out.scaled_sum16[2 * at] = scale * s0;
    out.scaled_sum16[2 * at + 1] = scale * s1;
  }
}
