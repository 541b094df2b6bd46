// SPDX-License-Identifier: Apache-2.0
// How long single operations took: the middle one, and the one that only a hundredth exceed.
#pragma once

#include <vector>

#include "base/json.h"

namespace weir::bench {

struct Latency {
  double median_s = 0, p99_s = 0;
  int count = 0;
};

// By nearest rank: figures that occurred. No values: all zeros.
Latency latency_of(std::vector<double> seconds);
json::Object latency_us(const Latency& latency);  // {"median", "p99", "count"}, microseconds

}  // namespace weir::bench
