// SPDX-License-Identifier: Apache-2.0
// What recording costs those who serve, and what a scrape costs.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "telemetry/access_log.h"
#include "telemetry/instruments.h"
#include "telemetry/metrics.h"
#include "telemetry/request_trace.h"

namespace weir::telemetry {
namespace {

void interval(benchmark::State& state) {
  static Histogram histogram;
  if (state.thread_index() == 0) histogram.set_bounds({0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 5, 10});
  double value = 0.001;
  for (auto _ : state) {
    histogram.record(value);
    value = value > 0.4 ? 0.001 : value * 1.1;
  }
}
BENCHMARK(interval)->Threads(1)->Threads(2);

void step(benchmark::State& state) {
  Metrics metrics;
  for (auto _ : state)
    metrics.record_step("smollm2", {.sequences = 32, .decode_positions = 32, .step_s = 0.01, .forward_s = 0.009, .choosing_s = 0.0005});
}
BENCHMARK(step);

void request_of_128_tokens(benchmark::State& state) {
  Metrics metrics;
  std::vector<Duration> times;
  for (int i = 0; i < 128; ++i) times.push_back(std::chrono::milliseconds(10 * i));
  const std::vector<std::string> reasons = {"length"};
  for (auto _ : state)
    metrics.record_request({.model = "smollm2",
                            .ttft_s = 0.1,
                            .e2e_s = 1.4,
                            .queue_s = 0.01,
                            .prefill_s = 0.09,
                            .decode_s = 1.3,
                            .prompt_tokens = 128,
                            .cached_tokens = 0,
                            .generated_tokens = 128,
                            .finish_reasons = reasons,
                            .token_times = times});
}
BENCHMARK(request_of_128_tokens);

void http_request(benchmark::State& state) {
  Metrics metrics;
  for (auto _ : state) metrics.record_http({.method = "POST", .route = "/v1/chat/completions", .status = 200, .total_s = 0.5});
}
BENCHMARK(http_request);

void scrape(benchmark::State& state) {
  Metrics metrics;
  ModelSnapshot model;
  model.name = "smollm2";
  model.has_engine = true;
  for (int i = 0; i < 40; ++i) metrics.record_http({.method = "POST", .route = "/v1/" + std::to_string(i), .status = 200, .total_s = 0.5});
  for (auto _ : state) benchmark::DoNotOptimize(metrics.text(std::vector{model}, {}));
}
BENCHMARK(scrape)->Unit(benchmark::kMicrosecond);

void access_log_line(benchmark::State& state) {
  AccessEntry entry;
  entry.method = "POST";
  entry.route = "/v1/chat/completions";
  entry.peer = "127.0.0.1:4711";
  entry.status = 200;
  entry.model = "smollm2";
  entry.prompt_tokens = entry.generated_tokens = 128;
  entry.finish_reasons = {"stop"};
  for (auto _ : state) benchmark::DoNotOptimize(access_line(entry, {}, 1'764'664'230'123));
}
BENCHMARK(access_log_line);

void spans_of_a_request(benchmark::State& state) {
  RequestTrace trace;
  trace.context = begin_trace("", 1);
  trace.operation = "chat";
  trace.request_model = "smollm2";
  trace.queue_s = trace.prefill_s = trace.decode_s = 0.1;
  trace.total_s = 1;
  for (auto _ : state) benchmark::DoNotOptimize(request_spans(trace));
}
BENCHMARK(spans_of_a_request);

}  // namespace
}  // namespace weir::telemetry
