// SPDX-License-Identifier: Apache-2.0
// Log probabilities from logits, summed in double in index order, so that a figure does not depend on the machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace weir::engine {

inline double log_sum_exp(std::span<const float> logits) {
  float top = logits.empty() ? 0 : logits[0];
  for (float v : logits) top = v > top ? v : top;
  double sum = 0;
  for (float v : logits) sum += std::exp(static_cast<double>(v) - top);
  return top + std::log(sum);
}

// The lowest index among the largest values.
inline std::int32_t argmax(std::span<const float> values) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] > values[best]) best = i;
  return static_cast<std::int32_t>(best);
}

}  // namespace weir::engine
