// SPDX-License-Identifier: Apache-2.0
// Norms, activations and other loops over single elements, with the C library's functions.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/reference/kernels.h"

namespace weir::kernels::reference {
namespace {

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

float gelu_tanh(float x) {
  constexpr float kSqrt2OverPi = 0.7978845608028654f;
  return 0.5f * x * (1.0f + std::tanh(kSqrt2OverPi * (x + 0.044715f * x * x * x)));
}

float gelu_erf(float x) { return 0.5f * x * (1.0f + std::erf(x * 0.7071067811865476f)); }

template <class Function>
void map(const float* x, const float* factor, std::int64_t n, float* out, Function f) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = factor ? f(x[i]) * factor[i] : f(x[i]);
}

void write_normalised(const NormRow& row, float mean, float inverse) {
  for (std::int64_t i = 0; i < row.n; ++i) {
    float y = (row.x[i] - mean) * inverse;
    if (row.weight) y *= row.weight[i];
    if (row.bias) y += row.bias[i];
    row.out[i] = y;
  }
}

}  // namespace

void rms_norm(const NormRow& row) {
  double sum = 0;
  for (std::int64_t i = 0; i < row.n; ++i) sum += static_cast<double>(row.x[i]) * row.x[i];
  write_normalised(row, 0.0f, static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(row.n) + row.epsilon)));
}

void layer_norm(const NormRow& row) {
  double sum = 0;
  for (std::int64_t i = 0; i < row.n; ++i) sum += row.x[i];
  const double mean = sum / static_cast<double>(row.n);
  double squares = 0;
  for (std::int64_t i = 0; i < row.n; ++i) squares += (row.x[i] - mean) * (row.x[i] - mean);
  write_normalised(row, static_cast<float>(mean), static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(row.n) + row.epsilon)));
}

void activate(Activation kind, const float* x, const float* factor, std::int64_t n, float* out) {
  switch (kind) {
    case Activation::kSilu: return map(x, factor, n, out, [](float v) { return v * sigmoid(v); });
    case Activation::kGeluTanh: return map(x, factor, n, out, gelu_tanh);
    case Activation::kGeluErf: return map(x, factor, n, out, gelu_erf);
    case Activation::kRelu: return map(x, factor, n, out, [](float v) { return v > 0 ? v : 0.0f; });
    case Activation::kReluSquared: return map(x, factor, n, out, [](float v) { return v > 0 ? v * v : 0.0f; });
    case Activation::kSigmoid: return map(x, factor, n, out, sigmoid);
  }
  WEIR_CHECK(false, "activation {}", static_cast<int>(kind));
}

void clamped_swiglu(const float* gate, const float* up, float alpha, float limit, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = std::min(gate[i], limit);
    const float u = std::clamp(up[i], -limit, limit);
    out[i] = g * sigmoid(alpha * g) * (u + 1.0f);
  }
}

void add(const float* x, float scale, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += scale * x[i];
}

void multiply(const float* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] *= x[i];
}

void scale(float factor, float softcap, std::int64_t n, float* x) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
  if (softcap > 0)
    for (std::int64_t i = 0; i < n; ++i) x[i] = softcap * std::tanh(x[i] / softcap);
}

void rope(float* x, const float* cosines, const float* sines, std::int64_t half, bool pairs) {
  for (std::int64_t i = 0; i < half; ++i) {
    float& a = pairs ? x[2 * i] : x[i];
    float& b = pairs ? x[2 * i + 1] : x[i + half];
    const float rotated = a * cosines[i] - b * sines[i];
    b = a * sines[i] + b * cosines[i];
    a = rotated;
  }
}

}  // namespace weir::kernels::reference
