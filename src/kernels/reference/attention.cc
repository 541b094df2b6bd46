// SPDX-License-Identifier: Apache-2.0
// The steps of online softmax (Milakov & Gimelshein 2018, arXiv:1805.02867) over one chunk of positions.
#include <algorithm>
#include <cmath>

#include "kernels/reference/dequantize.h"
#include "kernels/reference/kernels.h"

namespace weir::kernels::reference {

void load_keys(DType type, const std::byte* keys, std::int64_t dim, int first, int count, float* transposed) {
  const std::int64_t bytes = row_bytes(type, 1);
  for (int p = 0; p < count; ++p) {
    for (std::int64_t d = 0; d < dim; ++d) dequantize_row(type, keys + (p * dim + d) * bytes, 1, transposed + d * kKvChunk + first + p);
  }
}

void scores(const float* const* q, int rows, const float* transposed, std::int64_t dim, float* scores) {
  for (int r = 0; r < rows; ++r) {
    float* out = scores + r * kKvChunk;
    std::fill_n(out, kKvChunk, 0.0f);
    for (std::int64_t d = 0; d < dim; ++d)
      for (int p = 0; p < kKvChunk; ++p) out[p] += q[r][d] * transposed[d * kKvChunk + p];
  }
}

float softmax_chunk(float* scores, int begin, int end, float scale, float softcap, SoftmaxState& state) {
  float largest = state.max;
  for (int p = begin; p < end; ++p) {
    scores[p] *= scale;
    if (softcap > 0) scores[p] = softcap * std::tanh(scores[p] / softcap);
    largest = std::max(largest, scores[p]);
  }
  const float factor = std::exp(state.max - largest);  // 0 at first: max is -infinity
  float lanes[8] = {};
  for (int p = 0; p < kKvChunk; ++p) {
    scores[p] = p >= begin && p < end ? std::exp(scores[p] - largest) : 0.0f;
    lanes[p % 8] += scores[p];
  }
  for (int width = 4; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  state.sum = state.sum * factor + lanes[0];
  state.max = largest;
  return factor;
}

void weigh_values(const ValueTile& t) {
  for (int r = 0; r < t.rows; ++r) {
    float* acc = t.acc[r];
    for (std::int64_t d = 0; d < t.dim; ++d) acc[d] *= t.factors[r];
    for (int p = t.begin[r]; p < t.end[r]; ++p) {
      const float weight = t.weights[r * kKvChunk + p];
      const float* value = t.values + (p - t.first) * t.stride;
      for (std::int64_t d = 0; d < t.dim; ++d) acc[d] += weight * value[d];
    }
  }
}

}  // namespace weir::kernels::reference
