// SPDX-License-Identifier: Apache-2.0
#include "kernels/limits/hand_over.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/thread_pool.h"

namespace weir::kernels {
namespace {

constexpr int kRunsPerBatch = 200;
constexpr int kParkedRuns = 9;
constexpr auto kUntilParked = std::chrono::milliseconds(3);  // a worker spins for a fraction of a millisecond

// One run in which all threads meet; seconds. A thread that waits long gives way: there may be fewer processors than threads.
double run_together_once(ThreadPool& pool) {
  std::atomic<int> arrived{0};
  const int all = pool.size();
  const TimePoint start = steady_clock().now();
  pool.run([&](int) {
    arrived.fetch_add(1, std::memory_order_acq_rel);
    for (int spin = 0; arrived.load(std::memory_order_acquire) < all; ++spin)
      if (spin > 10'000) std::this_thread::yield();
  });
  return to_seconds(steady_clock().now() - start);
}

}  // namespace

HandOver measure_hand_over(int threads, double seconds) {
  ThreadPool pool(std::max(threads, 1));
  HandOver result{.threads = pool.size(), .spinning_s = {}, .parked_s = {}};
  std::vector<double> spinning, parked;
  const TimePoint start = steady_clock().now();
  do {
    double sum = 0;
    for (int i = 0; i < kRunsPerBatch; ++i) sum += run_together_once(pool);
    spinning.push_back(sum / kRunsPerBatch);
  } while (to_seconds(steady_clock().now() - start) < seconds && spinning.size() < 1000);
  for (int i = 0; i < kParkedRuns; ++i) {
    std::this_thread::sleep_for(kUntilParked);
    parked.push_back(run_together_once(pool));
  }
  result.spinning_s = spread_of(std::move(spinning));
  result.parked_s = spread_of(std::move(parked));
  return result;
}

}  // namespace weir::kernels
