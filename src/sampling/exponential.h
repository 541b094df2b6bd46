// SPDX-License-Identifier: Apache-2.0
// exp(logit - top) over a vocabulary. Every draw and every logprob takes it of each token, and the library's function one by one costs
// as much as a tenth of a small model's step. Here it is plain arithmetic in loops that compilers turn into vectors, the same bits
// everywhere: x = n·ln 2 + r, a polynomial for r with the coefficients of Cephes' expf (Moshier), n into the exponent. Relative error
// below 3e-7; below e^-87 the weight is 0.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::sampling {

// For x <= 0, -inf included.
inline float exp_of_negative(float x) {
  constexpr float kLowest = -87.0f, kRound = 12582912.0f;  // 1.5 · 2^23: adding it rounds to a whole number
  // Masks instead of branches, which compilers would not make vectors of.
  const std::int32_t in_range = -static_cast<std::int32_t>(x > kLowest);
  const float y = std::bit_cast<float>(std::bit_cast<std::int32_t>(x) & in_range);
  const float shifted = y * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (y - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound) + 127;
  const float weight = p * std::bit_cast<float>(exponent << 23);
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(weight) & in_range);
}

// Σ exp(logit - top), in lanes: the order of the sum depends on the length alone.
inline double sum_of_weights(std::span<const float> logits, float top) {
  constexpr std::size_t kLanes = 16;
  double lanes[kLanes] = {};
  const std::size_t whole = logits.size() - logits.size() % kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    float weights[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) weights[lane] = exp_of_negative(logits[i + lane] - top);
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(weights[lane]);
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (std::size_t i = whole; i < logits.size(); ++i) sum += static_cast<double>(exp_of_negative(logits[i] - top));
  return sum;
}

}  // namespace weir::sampling
