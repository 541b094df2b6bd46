// SPDX-License-Identifier: Apache-2.0
// What measuring every operation costs a decode step of SmolLM2: steps with and without it take turns.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "base/testing.h"
#include "engine/loaded_model.h"
#include "engine/runner.h"

namespace weir::engine {
namespace {

double median(std::vector<double>& values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void decode(benchmark::State& state) {
  if (!std::filesystem::exists(testing::smollm2_path())) return state.SkipWithError("no model");
  LoadedModel loaded = load_model(testing::smollm2_path(), {}).value();
  Runner runner(*loaded.model, {.max_tokens = 4096});
  const SeqId sequence = runner.open().value();
  const TokenId token = 5;
  const Piece pieces[] = {{sequence, {&token, 1}, Outputs::kLast}};
  std::vector<double> plain, measured;
  StepBreakdown all;
  for (auto _ : state) {
    for (const bool measure : {false, true}) {
      const TimePoint start = steady_clock().now();
      if (measure) loaded.meter->begin_step();
      benchmark::DoNotOptimize(runner.step(pieces).value());
      if (measure) all += loaded.meter->end_step();
      (measure ? measured : plain).push_back(to_seconds(steady_clock().now() - start));
    }
  }
  state.counters["plain_ms"] = median(plain) * 1e3;
  state.counters["measured_ms"] = median(measured) * 1e3;
  state.counters["operations"] = static_cast<double>(all.total().calls) / static_cast<double>(all.steps);
}
BENCHMARK(decode)->Iterations(500)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir::engine
