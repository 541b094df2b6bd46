// SPDX-License-Identifier: Apache-2.0
// Timing of a call that is too short to be timed alone, and small helpers that linear layers and attention share.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/spread.h"
#include "base/thread_pool.h"
#include "sampling/random.h"

namespace weir::bench {

// Seconds of one call, from `runs` runs of about `seconds` / `runs` each, after a warm-up call.
inline Spread time_calls(double seconds, int runs, FunctionRef<void()> call) {
  const auto timed = [&](std::int64_t count) {
    const TimePoint start = steady_clock().now();
    for (std::int64_t i = 0; i < count; ++i) call();
    return to_seconds(steady_clock().now() - start) / static_cast<double>(count);
  };
  call();
  const double once = std::max(timed(1), 1e-8);
  const auto count = static_cast<std::int64_t>(std::clamp(seconds / runs / once, 1.0, 1e7));
  std::vector<double> values;
  for (int i = 0; i < runs; ++i) values.push_back(timed(count));
  return spread_of(std::move(values));
}

// Values around 0, as activations have them: sums of four uniform ones.
inline std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = sampling::philox4x32_10({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0},
                                              {static_cast<std::uint32_t>(seed), 0x5eed});
    float sum = 0;
    for (const std::uint32_t b : bits) sum += static_cast<float>(b) * 0x1p-31f - 1.0f;
    values[i] = sum;
  }
  return values;
}

// The largest difference, in units of the root mean square of what is right. Values that are not finite are infinitely wrong.
inline double relative_error(std::span<const float> values, std::span<const float> right) {
  double squares = 0, most = 0;
  for (const float r : right) squares += static_cast<double>(r) * r;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const double difference = std::abs(static_cast<double>(values[i]) - right[i]);
    if (!(difference <= most)) most = std::isfinite(difference) ? difference : INFINITY;
  }
  const double size = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(right.size(), 1)));
  return size > 0 ? most / size : most;
}

}  // namespace weir::bench
