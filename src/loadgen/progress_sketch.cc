// SPDX-License-Identifier: Apache-2.0
#include "loadgen/progress_sketch.h"

#include <cmath>

namespace weir::loadgen {
namespace {

// The middle of a bucket, in seconds.
double middle(std::size_t bucket) {
  constexpr std::size_t kFirst = LatencySketch::kPerOctave;
  if (bucket < kFirst) return (static_cast<double>(bucket) + 0.5) * 1e-6;
  const auto octave = static_cast<int>(bucket / kFirst) - 1;
  const auto step = static_cast<double>(bucket % kFirst + kFirst);
  return std::ldexp(step + 0.5, octave) * 1e-6;
}

}  // namespace

std::uint64_t LatencySketch::count() const {
  std::uint64_t sum = 0;
  for (const auto& count : counts_) sum += count.load(std::memory_order_relaxed);
  return sum;
}

double LatencySketch::percentile(double p) const {
  const std::uint64_t total = count();
  if (total == 0) return 0;
  const auto rank = static_cast<std::uint64_t>(p / 100 * static_cast<double>(total - 1));
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i].load(std::memory_order_relaxed);
    if (below > rank) return middle(i);
  }
  return middle(counts_.size() - 1);
}

}  // namespace weir::loadgen
