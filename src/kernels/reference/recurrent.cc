// SPDX-License-Identifier: Apache-2.0
// One row of a recurrent layer at a time; the formulas stand in backend.h.
#include <algorithm>
#include <cmath>

#include "kernels/reference/kernels.h"

namespace weir::kernels::reference {

void conv_row(const ConvRow& row, const ConvParams& params) {
  const int past = params.taps - 1;
  for (std::int64_t c = row.begin; c < row.end; ++c) {
    const float* weight = params.weight + c * params.taps;
    float sum = params.bias ? params.bias[c] : 0.0f;
    for (int t = 0; t < past; ++t) sum += weight[t] * row.history[t * row.history_stride + c];
    sum += weight[past] * row.x[c];
    for (int t = 0; t + 1 < past; ++t) row.history[t * row.history_stride + c] = row.history[(t + 1) * row.history_stride + c];
    if (past > 0) row.history[(past - 1) * row.history_stride + c] = row.x[c];
    row.out[c] = params.silu ? sum / (1.0f + std::exp(-sum)) : sum;
  }
}

void ssd_step(const SsdStep& s) {
  for (std::int64_t i = 0; i < s.head_dim; ++i) {
    float* h = s.state + i * s.n;
    const float input = s.dt * s.x[i];
    float lanes[8] = {};
    for (std::int64_t j = 0; j < s.n; ++j) {
      h[j] = s.decay * h[j] + input * s.b[j];
      lanes[j % 8] += h[j] * s.c[j];
    }
    for (int width = 4; width > 0; width /= 2)
      for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
    s.out[i] = lanes[0] + s.d * s.x[i];
  }
}

void delta_step(const DeltaStep& s) {
  std::fill_n(s.scratch, s.value_dim, 0.0f);
  for (std::int64_t i = 0; i < s.key_dim; ++i) {
    float* row = s.state + i * s.value_dim;
    for (std::int64_t j = 0; j < s.value_dim; ++j) {
      row[j] *= s.decay;
      s.scratch[j] += s.k[i] * row[j];
    }
  }
  for (std::int64_t j = 0; j < s.value_dim; ++j) s.scratch[j] = s.beta * (s.v[j] - s.scratch[j]);
  std::fill_n(s.out, s.value_dim, 0.0f);
  for (std::int64_t i = 0; i < s.key_dim; ++i) {
    float* row = s.state + i * s.value_dim;
    for (std::int64_t j = 0; j < s.value_dim; ++j) {
      row[j] += s.k[i] * s.scratch[j];
      s.out[j] += s.q[i] * row[j];
    }
  }
}

}  // namespace weir::kernels::reference
