// SPDX-License-Identifier: Apache-2.0
// The largest logit, its lowest index, and whether all are numbers: one pass over the vocabulary. Sixteen running values instead
// of one, so that the compiler uses vectors (three times as fast: sampling_bench, greedy).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "base/ids.h"

namespace weir::sampling {

struct LogitScan {
  float max = -std::numeric_limits<float>::infinity();
  bool finite = true;  // no NaN and no +inf; -inf is a token that cannot be
  TokenId first = -1;  // the lowest index of the largest; -1 when none is above -inf
};

inline LogitScan scan(std::span<const float> logits) {
  constexpr std::size_t kLanes = 16;
  constexpr float kLargest = std::numeric_limits<float>::max();
  LogitScan result;
  float max[kLanes];
  std::int32_t bad[kLanes] = {};
  std::fill_n(max, kLanes, result.max);
  const std::size_t whole = logits.size() - logits.size() % kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float v = logits[i + lane];
      max[lane] = v > max[lane] ? v : max[lane];
      bad[lane] |= !(v <= kLargest);
    }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    result.max = std::max(result.max, max[lane]);
    result.finite &= bad[lane] == 0;
  }
  for (std::size_t i = whole; i < logits.size(); ++i) {
    if (logits[i] > result.max) result.max = logits[i];
    result.finite &= logits[i] <= kLargest;
  }
  if (result.max > -std::numeric_limits<float>::infinity())
    result.first = static_cast<TokenId>(std::find(logits.begin(), logits.end(), result.max) - logits.begin());
  return result;
}

}  // namespace weir::sampling
