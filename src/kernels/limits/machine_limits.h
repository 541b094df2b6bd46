// SPDX-License-Identifier: Apache-2.0
// All that this machine can do at most, measured: read speed by the size of what is read, with ordinary and with 2 MiB pages; multiply-add
// peaks; the cost of handing work to threads; whether processors share cores. Every figure of an engine is a share of one of these.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kernels/limits/caches.h"
#include "kernels/limits/core_sharing.h"
#include "kernels/limits/hand_over.h"
#include "kernels/limits/multiply_add.h"
#include "kernels/limits/read_speed.h"
#include "kernels/limits/roofline.h"

namespace weir::kernels {

enum class Effort { kQuick, kFull };  // about 3 seconds, about 15

inline constexpr const char* kDram = "DRAM";

struct ReadPoint {
  std::string where;  // "L2", "L3", "90 MiB", kDram
  std::uint64_t bytes_per_thread = 0;
  Pages pages = Pages::kOrdinary;
  int threads = 1;
  Spread bytes_per_s;
};

struct MachineLimits {
  int threads = 1;
  CacheSizes caches;
  std::vector<ReadPoint> reads;
  std::vector<Peak> peaks;
  std::vector<HandOver> hand_overs;
  std::vector<PairSpeed> pairs;
};

// Sizes to read per thread when `threads` do at once: half of L2, half of a thread's part of L3, 90 MiB, and much more than any cache. None
// needs more than an eighth of the free memory, all threads together; what does not fit is cut, or left out.
std::vector<ReadPoint> read_points(const CacheSizes& caches, int threads, std::uint64_t free_memory, Effort effort);

// With one thread and with `threads`. `keep_going` is asked between probes; false cancels.
Result<MachineLimits> measure_machine(int threads, Effort effort, const std::function<bool()>& keep_going);

// The roofs that pieces of work are judged by: the best read of memory and the best peak of each arithmetic, with all threads.
Limits limits_of(const MachineLimits& machine);

json::Object to_json(const MachineLimits& limits);
json::Object spread_json(const Spread& spread, double unit);  // {"median", "min", "max"}, each times `unit`

}  // namespace weir::kernels
