// SPDX-License-Identifier: Apache-2.0
#include "bench/latency.h"

#include <algorithm>

namespace weir::bench {

Latency latency_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const auto ranked = [&](std::size_t per_cent) { return seconds[(seconds.size() * per_cent + 99) / 100 - 1]; };
  return {ranked(50), ranked(99), static_cast<int>(seconds.size())};
}

json::Object latency_us(const Latency& latency) {
  return {{"median", latency.median_s * 1e6}, {"p99", latency.p99_s * 1e6}, {"count", latency.count}};
}

}  // namespace weir::bench
