// SPDX-License-Identifier: Apache-2.0
#include "kernels/limits/core_sharing.h"

#include <sched.h>

#include <array>

#include "base/thread_pool.h"
#include "kernels/limits/multiply_add.h"

namespace weir::kernels {
namespace {

constexpr double kSeconds = 0.03;
constexpr int kRuns = 6;

// The fastest float loop: it fills a core's multipliers, so that a second thread finds none free.
const MultiplyAddLoop& filling_loop() {
  const MultiplyAddLoop* best = &multiply_add_loops().front();
  for (const MultiplyAddLoop& loop : multiply_add_loops())
    if (loop.usable && loop.arithmetic == Arithmetic::kF32 && loop.ops_per_step > best->ops_per_step) best = &loop;
  return *best;
}

}  // namespace

std::vector<int> allowed_processors() {
  std::vector<int> processors;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return {0};
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &mask)) processors.push_back(i);
  return processors;
}

std::vector<PairSpeed> measure_core_sharing(int most) {
  const std::vector<int> processors = allowed_processors();
  std::vector<PairSpeed> pairs;
  if (usable_processors() < 2) return pairs;  // a quota of one processor would make any two look shared
  for (std::size_t i = 1; i < processors.size() && static_cast<int>(i) <= most; ++i) {
    const std::array pair = {processors[0], processors[i]};
    // The best of several runs: what else the machine does only slows down.
    const double alone = measure_multiply_add(filling_loop(), 1, kSeconds, kRuns, pair).ops_per_s.max;
    const double both = measure_multiply_add(filling_loop(), 2, kSeconds, kRuns, pair).ops_per_s.max;
    pairs.push_back({pair[0], pair[1], both / alone});
  }
  return pairs;
}

}  // namespace weir::kernels
