// SPDX-License-Identifier: Apache-2.0
// How much one key may use: requests and tokens per minute as buckets that refill steadily, and requests at a time. A request is charged
// its prompt and the most it may generate; what it did not generate comes back at its end.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace weir::serving {

// Zero: no limit.
struct KeyLimits {
  std::int64_t requests_per_minute = 0;
  std::int64_t tokens_per_minute = 0;
  std::int64_t concurrent = 0;
  friend bool operator==(const KeyLimits&, const KeyLimits&) = default;
};

}  // namespace weir::serving
