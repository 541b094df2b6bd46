// SPDX-License-Identifier: Apache-2.0
// Online softmax (Milakov & Gimelshein 2018, arXiv:1805.02867) over one chunk of positions, on floats and on BF16 pairs whose
// rounding is done by hand.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/reference/dequantize.h"
#include "kernels/reference/half.h"
#include "kernels/reference/kernels.h"

namespace weir::kernels::reference {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

std::uint16_t half_at(const std::byte* p, std::int64_t i) {
  std::uint16_t bits;
  std::memcpy(&bits, p + 2 * i, sizeof bits);
  return bits;
}
float float_at(const std::byte* p, std::int64_t i) {
  float x;
  std::memcpy(&x, p + 4 * i, sizeof x);
  return x;
}

// Key dimension d of position p of a tile; value dimension d likewise.
template <KvWord word>
float key_at(const std::byte* tile, std::int64_t d, int p) {
  if (word == KvWord::kF32) return float_at(tile, d * kKvTile + p);
  if (word == KvWord::kF16) return f16_to_float(half_at(tile, d * kKvTile + p));
  return bf16_to_float(half_at(tile, (d / 2 * kKvTile + p) * 2 + d % 2));
}
template <KvWord word>
float value_at(const std::byte* tile, std::int64_t dim, std::int64_t d, int p) {
  if (word == KvWord::kF32) return float_at(tile, p * dim + d);
  if (word == KvWord::kF16) return f16_to_float(half_at(tile, p * dim + d));
  return bf16_to_float(half_at(tile, (p / 2 * dim + d) * 2 + p % 2));
}

template <KvWord word>
float query_at(const float* q, std::int64_t d) {
  if (word != KvWord::kBF16Pairs) return q[d];
  return bf16_to_float(half_at(reinterpret_cast<const std::byte*>(q), d));
}

template <KvWord word>
void score_entry(const AttentionStep& s, int entry, float* scores) {
  const float* q = s.q + entry * s.key_words;
  const std::int64_t dim = word == KvWord::kBF16Pairs ? 2 * s.key_words : s.key_words;
  for (int i = 0; i < s.tiles * kKvTile; ++i) {
    scores[i] = kNothing;
    if (i < s.begin[entry] || i >= s.end[entry]) continue;
    float sum = 0;
    for (std::int64_t d = 0; d < dim; ++d) sum += query_at<word>(q, d) * key_at<word>(s.keys[i / kKvTile], d, i % kKvTile);
    scores[i] = s.softcap > 0 ? s.softcap * std::tanh(sum) : sum;
  }
}

void raise_maximum(const AttentionSums& sums, float most, std::int64_t dim) {
  if (!(*sums.max + kMaxSlack < most)) return;
  const float factor = std::exp2(*sums.max - most);
  *sums.max = most;
  for (int i = 0; i < kKvTile; ++i) sums.weights[i] *= factor;
  for (std::int64_t d = 0; d < dim; ++d) sums.acc[d] *= factor;
}

template <KvWord word>
void attend_entry(const AttentionStep& s, int entry) {
  const AttentionSums sums = s.sums.from(entry);
  const int begin = std::max(s.begin[entry], 0), end = std::min(s.end[entry], s.tiles * kKvTile);
  if (begin >= end) return;
  float scores[kKvChunk];
  score_entry<word>(s, entry, scores);
  raise_maximum(sums, *std::max_element(scores + begin, scores + end), s.value_dim);
  for (int i = begin; i < end; ++i) {
    float weight = std::exp2(scores[i] - *sums.max);
    sums.weights[i % kKvTile] += weight;
    if (word == KvWord::kBF16Pairs) weight = bf16_to_float(float_to_bf16(weight));
    for (std::int64_t d = 0; d < s.value_dim; ++d)
      sums.acc[d] += weight * value_at<word>(s.values[i / kKvTile], s.value_dim, d, i % kKvTile);
  }
}

template <KvWord word>
void attention_step(const AttentionStep& s) {
  for (int e = 0; e < s.entries; ++e) attend_entry<word>(s, e);
}

void pack_query(const float* q, std::int64_t dim, float scale, float* out) {
  for (std::int64_t d = 0; d < dim; ++d) out[d] = q[d] * scale;
}
void pack_query_pairs(const float* q, std::int64_t dim, float scale, float* out) {
  for (std::int64_t d = 0; d < dim + dim % 2; ++d) {
    const std::uint16_t bits = d < dim ? float_to_bf16(q[d] * scale) : 0;
    std::memcpy(reinterpret_cast<std::byte*>(out) + 2 * d, &bits, sizeof bits);
  }
}

float row_at(const TileRows& t, int p, std::int64_t d) { return p < t.count && d < t.dim ? t.rows[p * t.stride + d] : 0.0f; }

void pack_keys(const TileRows& t, std::byte* tile) {
  auto* out = reinterpret_cast<float*>(tile);
  for (std::int64_t d = 0; d < t.dim; ++d)
    for (int p = 0; p < kKvTile; ++p) *out++ = row_at(t, p, d);
}
void pack_values(const TileRows& t, std::byte* tile) {
  auto* out = reinterpret_cast<float*>(tile);
  for (int p = 0; p < kKvTile; ++p)
    for (std::int64_t d = 0; d < t.dim; ++d) *out++ = row_at(t, p, d);
}
void put_pair(float first, float second, std::byte*& out) {
  const std::uint16_t bits[] = {float_to_bf16(first), float_to_bf16(second)};
  std::memcpy(out, bits, sizeof bits);
  out += sizeof bits;
}
void pack_keys_pairs(const TileRows& t, std::byte* tile) {
  for (std::int64_t d = 0; d < t.dim; d += 2)
    for (int p = 0; p < kKvTile; ++p) put_pair(row_at(t, p, d), row_at(t, p, d + 1), tile);
}
void pack_values_pairs(const TileRows& t, std::byte* tile) {
  for (int p = 0; p < kKvTile; p += 2)
    for (std::int64_t d = 0; d < t.dim; ++d) put_pair(row_at(t, p, d), row_at(t, p + 1, d), tile);
}

void key_rows(KvWord word, const std::byte* tile, std::int64_t dim, float* rows) {
  for (int p = 0; p < kKvTile; ++p) {
    for (std::int64_t d = 0; d < dim; ++d) {
      *rows++ = word == KvWord::kF32   ? key_at<KvWord::kF32>(tile, d, p)
                : word == KvWord::kF16 ? key_at<KvWord::kF16>(tile, d, p)
                                       : key_at<KvWord::kBF16Pairs>(tile, d, p);
    }
  }
}

void split_pairs(const std::byte* words, std::int64_t rows, std::int64_t n, float* out) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < 2 * n; ++i) out[(2 * r + i % 2) * n + i / 2] = bf16_to_float(half_at(words, 2 * n * r + i));
}

void merge(const AttentionSums& total, const AttentionSums& part, std::int64_t dim) {
  if (*part.max == kNothing) return;
  const float most = std::max(*total.max, *part.max), a = std::exp2(*total.max - most), b = std::exp2(*part.max - most);
  *total.max = most;
  for (int i = 0; i < kKvTile; ++i) total.weights[i] = total.weights[i] * a + part.weights[i] * b;
  for (std::int64_t d = 0; d < dim; ++d) total.acc[d] = total.acc[d] * a + part.acc[d] * b;
}

void finish(const AttentionSums& sums, const float* sink, std::int64_t dim, float* out) {
  float total = 0, factor = 1;
  for (int i = 0; i < kKvTile; ++i) total += sums.weights[i];
  if (sink) {
    const float most = std::max(*sums.max, *sink);
    factor = std::exp2(*sums.max - most);
    total = total * factor + std::exp2(*sink - most);
  }
  for (std::int64_t d = 0; d < dim; ++d) out[d] = sums.acc[d] * (factor / total);
}

}  // namespace

const AttentionKernels& attention() {
  static constexpr AttentionKernels kKernels{
      .f32 = {attention_step<KvWord::kF32>, pack_query, pack_keys, pack_values},
      .bf16 = {attention_step<KvWord::kBF16Pairs>, pack_query_pairs, pack_keys_pairs, pack_values_pairs},
      .step_f16 = attention_step<KvWord::kF16>,
      .key_rows = key_rows,
      .q8_0_row = [](const std::byte* row, std::int64_t dim, float* out) { dequantize_row(DType::kQ8_0, row, dim, out); },
      .split_pairs = split_pairs,
      .merge = merge,
      .finish = finish};
  return kKernels;
}

}  // namespace weir::kernels::reference
