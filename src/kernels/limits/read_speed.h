// SPDX-License-Identifier: Apache-2.0
// How fast threads read memory that they have touched before, by the size of what each of them goes through again and again: the
// roof of everything that streams weights. Ordinary pages and 2 MiB ones differ.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/spread.h"

namespace weir::kernels {

enum class Pages { kOrdinary, kHuge };  // kHuge is asked for; the system may not grant it
const char* pages_name(Pages pages);    // "ordinary pages", "2 MiB pages"

struct ReadRequest {
  int threads = 1;
  std::uint64_t bytes_per_thread = 0;
  Pages pages = Pages::kOrdinary;
  double seconds = 0.3;  // spent about, in `runs` runs, after a first pass over the memory
  int runs = 5;
  std::span<const int> processors{};  // when given, thread t is pinned to processors[t]
  std::optional<int> memory_node{};   // when given, the memory is taken from this NUMA node
};

// Bytes per second of all threads together. kExhausted when the memory cannot be had; kUnsupported when the system does not place it on
// the node that was asked for.
Result<Spread> measure_read(const ReadRequest& request);

}  // namespace weir::kernels
