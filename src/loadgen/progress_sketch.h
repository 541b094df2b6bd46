// SPDX-License-Identifier: Apache-2.0
// Percentiles of latencies while they come in, in 4 KiB: counts in buckets that grow by a sixteenth of an octave, from 1 µs to over an
// hour. Workers add with one relaxed increment and take no lock; who reads sees a count or two too few. For the eyes only: results are
// computed from the samples themselves.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/clock.h"

namespace weir::loadgen {

class LatencySketch {
 public:
  void add(Duration latency) { counts_[bucket(latency)].fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t count() const;
  double percentile(double p) const;  // seconds, within 3.2 % for latencies from 16 µs on; 0 when empty

  static constexpr int kPerOctave = 16, kOctaves = 32;
  // Latencies of 0..15 µs have a bucket each; above, the four bits behind the leading one choose.
  static std::size_t bucket(Duration latency) {
    const std::int64_t us = latency.count() / 1000;
    if (us < kPerOctave) return us < 0 ? 0 : static_cast<std::size_t>(us);
    const int octave = std::bit_width(static_cast<std::uint64_t>(us)) - 5;
    if (octave >= kOctaves - 1) return kPerOctave * kOctaves - 1;
    return static_cast<std::size_t>(kPerOctave * (octave + 1) + ((us >> octave) - kPerOctave));
  }

 private:
  std::array<std::atomic<std::uint64_t>, kPerOctave * kOctaves> counts_{};
};

}  // namespace weir::loadgen
