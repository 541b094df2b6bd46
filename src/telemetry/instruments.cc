// SPDX-License-Identifier: Apache-2.0
#include "telemetry/instruments.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace weir::telemetry {
namespace {

// Threads get shards in turn: those of one kind (io, pump, engines) then mostly have one each.
std::size_t shard_of_thread(std::size_t shards) {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine % shards;
}

}  // namespace

std::uint64_t HistogramReading::total() const {
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts) all += count;
  return all;
}

std::uint64_t HistogramReading::at_most(double bound) const {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < bounds.size() && bounds[i] <= bound; ++i) all += counts[i];
  return all;
}

void Histogram::set_bounds(std::vector<double> bounds) {
  WEIR_CHECK(bounds.size() <= kMaxBounds && std::is_sorted(bounds.begin(), bounds.end()));
  bounds_ = std::move(bounds);
}

void Histogram::record(double value) {
  if (std::isnan(value)) return;
  value = std::max(value, 0.0);
  const auto bucket = static_cast<std::size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin());
  Shard& shard = shards_[shard_of_thread(kShards)];
  add(shard.counts[bucket]);
  shard.sum.fetch_add(value, std::memory_order_relaxed);
}

HistogramReading Histogram::read() const {
  HistogramReading reading{.bounds = bounds_, .counts = std::vector<std::uint64_t>(bounds_.size() + 1)};
  for (const Shard& shard : shards_) {
    for (std::size_t i = 0; i < reading.counts.size(); ++i) reading.counts[i] += shard.counts[i].load(std::memory_order_relaxed);
    reading.sum += shard.sum.load(std::memory_order_relaxed);
  }
  return reading;
}

}  // namespace weir::telemetry
