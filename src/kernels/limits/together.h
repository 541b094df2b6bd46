// SPDX-License-Identifier: Apache-2.0
// Threads that start at the same moment, for measuring what several can do at once.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace weir::kernels {

// Runs body(thread) `runs` times on each of `threads` threads, all starting each run together. Returns each run's seconds, from the
// first start to the last end. `processors`, when given, pins thread t to processors[t].
std::vector<double> run_together(int threads, int runs, FunctionRef<void(int)> body, std::span<const int> processors = {});

}  // namespace weir::kernels
