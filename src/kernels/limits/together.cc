// SPDX-License-Identifier: Apache-2.0
#include "kernels/limits/together.h"

#include <sched.h>

#include <algorithm>
#include <barrier>
#include <thread>

#include "base/check.h"
#include "base/clock.h"

namespace weir::kernels {
namespace {

void pin_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ::sched_setaffinity(0, sizeof set, &set);  // not allowed: runs where it is
}

struct Times {
  TimePoint start, end;
};

}  // namespace

std::vector<double> run_together(int threads, int runs, FunctionRef<void(int)> body, std::span<const int> processors) {
  WEIR_CHECK(threads >= 1 && runs >= 0);
  WEIR_CHECK(processors.empty() || processors.size() >= static_cast<std::size_t>(threads));
  std::vector<std::vector<Times>> times(static_cast<std::size_t>(threads), std::vector<Times>(static_cast<std::size_t>(runs)));
  std::barrier barrier(threads);
  const auto work = [&](int thread) {
    if (!processors.empty()) pin_to(processors[static_cast<std::size_t>(thread)]);
    for (int run = 0; run < runs; ++run) {
      Times& t = times[static_cast<std::size_t>(thread)][static_cast<std::size_t>(run)];
      barrier.arrive_and_wait();
      t.start = steady_clock().now();
      body(thread);
      t.end = steady_clock().now();
    }
  };
  {
    std::vector<std::jthread> pool;
    pool.reserve(static_cast<std::size_t>(threads));
    for (int t = 0; t < threads; ++t) pool.emplace_back(work, t);
  }
  std::vector<double> seconds;
  for (std::size_t run = 0; run < static_cast<std::size_t>(runs); ++run) {
    TimePoint first = times[0][run].start, last = times[0][run].end;
    for (const auto& of_thread : times) {
      first = std::min(first, of_thread[run].start);
      last = std::max(last, of_thread[run].end);
    }
    seconds.push_back(to_seconds(last - first));
  }
  return seconds;
}

}  // namespace weir::kernels
