// SPDX-License-Identifier: Apache-2.0
// What a hand-over costs: a run whose parts do nothing, and one after a pause in which workers may have gone to sleep.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/thread_pool.h"

namespace weir {
namespace {

void busy_for(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Every thread does `ns` of work in each run; what a run takes beyond that is the hand-over.
void BM_Run(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  const std::chrono::nanoseconds work(state.range(1));
  for (auto _ : state)
    pool.run([&](int) {
      if (work.count() > 0) busy_for(work);
    });
}
BENCHMARK(BM_Run)->ArgNames({"threads", "work_ns"})->ArgsProduct({{1, 2, 4}, {0, 2'000, 20'000}})->UseRealTime();

// The caller does something else between runs.
void BM_RunAfterGap(benchmark::State& state) {
  ThreadPool pool(std::max(2, usable_processors()));
  const std::chrono::microseconds gap(state.range(0));
  for (auto _ : state) {
    busy_for(gap);
    pool.run([](int) { busy_for(std::chrono::microseconds(2)); });
  }
}
BENCHMARK(BM_RunAfterGap)->ArgName("gap_us")->Arg(1)->Arg(20)->Arg(100)->Arg(1000)->UseRealTime();

}  // namespace
}  // namespace weir
