// SPDX-License-Identifier: Apache-2.0
// How many threads to compute with. Processors may share a core, a quota may be a fraction, memory may be saturated by a few: so it is
// measured, once per machine, mask and quota. No result depends on it.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace weir::kernels {

struct ThreadChoice {
  int threads = 1;
  std::string note = {};  // when it is not what was asked for
};

// `requested` > 0: that many, at most the usable processors: more would only take turns. 0: by measurement, a fraction of a second the
// first time, then from a file in `folder` (default: the cache folder).
ThreadChoice choose_threads(int requested);

// The parts, for tests.
struct ThreadSpeed {
  int threads = 1;
  double multiply_adds = 0, bytes = 0;  // per second, all threads together
};
std::vector<int> thread_candidates(int usable);  // ascending; the last is `usable`
// The fewest threads within a twentieth of the best, judged by both speeds multiplied: prefill needs one, decode the other.
int best_thread_count(std::span<const ThreadSpeed> speeds);
// The number kept under `key` in the file, else what `measure` finds, which is kept; 0 from `measure` is not kept.
int remembered_thread_count(const std::filesystem::path& file, const std::string& key, int usable, const std::function<int()>& measure);

}  // namespace weir::kernels
