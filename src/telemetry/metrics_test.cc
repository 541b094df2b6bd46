// SPDX-License-Identifier: Apache-2.0
// What is recorded comes out under all its names, in text that Prometheus' parsers accept, from any number of threads.
#include "telemetry/metrics.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <thread>

#include "base/file_io.h"
#include "base/testing.h"
#include "telemetry/instruments.h"
#include "telemetry/metric_books.h"
#include "telemetry/metric_table.h"
#include "telemetry/testing_exposition.h"

namespace weir::telemetry {
namespace {

using namespace std::chrono_literals;
using testing::Exposition;
using testing::read_exposition;

ModelSnapshot ready_model(std::string name = "smollm2") {
  ModelSnapshot model;
  model.name = std::move(name);
  model.state = "ready";
  model.has_engine = true;
  model.block_tokens = 32;
  model.cache_blocks = 1000;
  return model;
}

Exposition scrape(Metrics& metrics, const std::vector<ModelSnapshot>& models = {ready_model()}, const ServerSnapshot& server = {}) {
  Exposition e = read_exposition(metrics.text(models, server));
  EXPECT_TRUE(e.problems.empty()) << e.problems.front();
  return e;
}

const std::vector<std::string> kStopped = {"stop"};
const std::vector<Duration> kTokenTimes = {20ms, 30ms, 45ms, 145ms};

RequestSample good_request() {
  return {.model = "smollm2",
          .ttft_s = 0.02,
          .e2e_s = 0.15,
          .queue_s = 0.005,
          .prefill_s = 0.015,
          .decode_s = 0.125,
          .prompt_tokens = 100,
          .cached_tokens = 50,
          .generated_tokens = 4,
          .max_tokens = 128,
          .answers = 1,
          .finish_reasons = kStopped,
          .token_times = kTokenTimes};
}

TEST(Metrics, ARequestIsInAllItsHistogramsUnderBothNames) {
  Metrics metrics;
  metrics.record_request(good_request());
  const Exposition e = scrape(metrics);
  EXPECT_EQ(e.at(R"(weir_ttft_seconds_bucket{model="smollm2",le="0.01"})"), 0);
  EXPECT_EQ(e.at(R"(weir_ttft_seconds_bucket{model="smollm2",le="0.025"})"), 1);
  EXPECT_EQ(e.at(R"(vllm:time_to_first_token_seconds_bucket{model_name="smollm2",engine="0",le="0.01"})"), 0);
  EXPECT_EQ(e.at(R"(vllm:time_to_first_token_seconds_bucket{model_name="smollm2",engine="0",le="0.02"})"), 1);
  EXPECT_DOUBLE_EQ(e.at(R"(vllm:time_to_first_token_seconds_sum{model_name="smollm2",engine="0"})"), 0.02);
  // Gaps of 10, 15 and 100 ms.
  EXPECT_EQ(e.at(R"(weir_itl_seconds_count{model="smollm2"})"), 3);
  EXPECT_EQ(e.at(R"(weir_itl_seconds_bucket{model="smollm2",le="0.01"})"), 1);
  EXPECT_EQ(e.at(R"(weir_itl_seconds_bucket{model="smollm2",le="0.015"})"), 2);
  EXPECT_EQ(e.at(R"(vllm:inter_token_latency_seconds_bucket{model_name="smollm2",engine="0",le="0.1"})"), 3);
  EXPECT_EQ(e.at(R"(vllm:time_per_output_token_seconds_count{model_name="smollm2",engine="0"})"), 3);
  EXPECT_DOUBLE_EQ(e.at(R"(weir_tpot_seconds_sum{model="smollm2"})"), 0.125 / 3);
  EXPECT_DOUBLE_EQ(e.at(R"(vllm:request_inference_time_seconds_sum{model_name="smollm2",engine="0"})"), 0.14);
  EXPECT_EQ(e.at(R"(vllm:request_prompt_tokens_bucket{model_name="smollm2",engine="0",le="100"})"), 1);
  EXPECT_EQ(e.at(R"(vllm:request_prompt_tokens_bucket{model_name="smollm2",engine="0",le="50"})"), 0);
  EXPECT_EQ(e.at(R"(weir_request_cached_ratio_bucket{model="smollm2",le="0.5"})"), 1);
  EXPECT_EQ(e.at(R"(weir_request_cached_ratio_bucket{model="smollm2",le="0.25"})"), 0);
  EXPECT_EQ(e.at(R"(weir_answers_total{model="smollm2",finish_reason="stop"})"), 1);
  EXPECT_EQ(e.at(R"(vllm:request_success_total{model_name="smollm2",engine="0",finished_reason="stop"})"), 1);
  EXPECT_EQ(e.at(R"(weir_requests_total{model="smollm2",outcome="ok"})"), 1);
}

TEST(Metrics, WhatIsUnknownIsNotRecordedAsZero) {
  Metrics metrics;
  metrics.record_request({.model = "smollm2", .error_code = "context_length_exceeded"});
  metrics.record_request({.model = "", .error_code = "model_not_found"});  // of no model
  const Exposition e = scrape(metrics);
  for (const char* name : {"weir_ttft_seconds", "weir_e2e_seconds", "weir_queue_seconds", "weir_request_prompt_tokens", "weir_itl_seconds"})
    EXPECT_EQ(e.at(std::string(name) + R"(_count{model="smollm2"})"), 0) << name;
  EXPECT_EQ(e.at(R"(weir_requests_total{model="smollm2",outcome="failed"})"), 1);
  EXPECT_EQ(e.series.count(R"(weir_requests_total{model="",outcome="failed"})"), 0u);
}

TEST(Metrics, FinishReasonsAreCountedInVllmsWordsToo) {
  Metrics metrics;
  const std::vector<std::string> reasons = {"tool_calls", "stop", "length", "cancelled", "error", "moon"};
  RequestSample sample = good_request();
  sample.finish_reasons = reasons;
  sample.cancelled = true;
  metrics.record_request(sample);
  const Exposition e = scrape(metrics);
  const auto vllm = [&](const std::string& reason) {
    return e.at(R"(vllm:request_success_total{model_name="smollm2",engine="0",finished_reason=")" + reason + "\"}");
  };
  EXPECT_EQ(vllm("stop"), 2);
  EXPECT_EQ(vllm("length"), 1);
  EXPECT_EQ(vllm("abort"), 1);
  EXPECT_EQ(vllm("error"), 2);
  EXPECT_EQ(e.at(R"(weir_answers_total{model="smollm2",finish_reason="tool_calls"})"), 1);
  EXPECT_EQ(e.at(R"(weir_cancellations_total{model="smollm2"})"), 1);
  EXPECT_EQ(e.at(R"(weir_requests_total{model="smollm2",outcome="cancelled"})"), 1);
}

TEST(Metrics, StepsAreRecorded) {
  Metrics metrics;
  metrics.record_step("smollm2", {.sequences = 9,
                                  .prefill_positions = 40,
                                  .decode_positions = 8,
                                  .drafted = 3,
                                  .accepted = 2,
                                  .step_s = 0.012,
                                  .forward_s = 0.01,
                                  .choosing_s = 0.001});
  metrics.record_step("smollm2", {.sequences = 1, .decode_positions = 1, .step_s = 0.004});
  const Exposition e = scrape(metrics);
  EXPECT_EQ(e.at(R"(weir_step_seconds_count{model="smollm2"})"), 2);
  EXPECT_EQ(e.at(R"(weir_step_seconds_bucket{model="smollm2",le="0.01"})"), 1);
  EXPECT_EQ(e.at(R"(weir_step_sequences_bucket{model="smollm2",le="8"})"), 1);
  EXPECT_EQ(e.at(R"(weir_step_sequences_sum{model="smollm2"})"), 10);
  EXPECT_EQ(e.at(R"(vllm:iteration_tokens_total_sum{model_name="smollm2",engine="0"})"), 49);
  EXPECT_EQ(e.at(R"(vllm:spec_decode_num_drafts_total{model_name="smollm2",engine="0"})"), 1);
}

TEST(Metrics, SnapshotsBecomeGaugesForRouters) {
  Metrics metrics;
  ModelSnapshot model = ready_model();
  model.running = 7;
  model.waiting = 3;
  model.kv_use = 0.25;
  model.adapters = {"sql", "de"};
  const Exposition e = scrape(metrics, {model});
  EXPECT_EQ(e.at(R"(vllm:num_requests_running{model_name="smollm2",engine="0"})"), 7);
  EXPECT_EQ(e.at(R"(vllm:num_requests_waiting{model_name="smollm2",engine="0"})"), 3);
  EXPECT_EQ(e.at(R"(vllm:kv_cache_usage_perc{model_name="smollm2",engine="0"})"), 0.25);
  EXPECT_EQ(e.at(R"(vllm:gpu_cache_usage_perc{model_name="smollm2",engine="0"})"), 0.25);
  EXPECT_EQ(
      e.at(R"(vllm:cache_config_info{model_name="smollm2",engine="0",block_size="32",num_gpu_blocks="1000",enable_prefix_caching="True"})"),
      1);
  EXPECT_GT(e.at(R"(vllm:lora_requests_info{max_lora="2",running_lora_adapters="sql,de",waiting_lora_adapters=""})"), 1.7e9);
  EXPECT_EQ(e.at(R"(weir_model_state{model="smollm2",state="ready"})"), 1);
  EXPECT_EQ(e.at(R"(weir_model_state{model="smollm2",state="loading"})"), 0);
}

TEST(Metrics, CountersGoOnWhenAnEngineIsReplacedOrUnloaded) {
  Metrics metrics;
  ModelSnapshot model = ready_model();
  const std::string name = R"(vllm:generation_tokens_total{model_name="smollm2",engine="0"})";
  model.generated_tokens = 100;
  EXPECT_EQ(scrape(metrics, {model}).at(name), 100);
  model.has_engine = false;
  model.generated_tokens = 0;
  EXPECT_EQ(scrape(metrics, {model}).at(name), 100);
  model.has_engine = true;
  model.generated_tokens = 30;
  EXPECT_EQ(scrape(metrics, {model}).at(name), 130);
  model.generated_tokens = 40;
  EXPECT_EQ(scrape(metrics, {model}).at(name), 140);
}

TEST(Metrics, HttpRequestsAreCountedByRouteAndStatus) {
  Metrics metrics;
  metrics.record_http({.method = "POST", .route = "/v1/completions", .status = 200, .total_s = 0.3, .bytes_in = 10, .bytes_out = 100});
  metrics.record_http({.method = "POST", .route = "/v1/completions", .status = 429, .total_s = 0.001});
  metrics.record_http({.method = "BREW", .route = "", .status = 405, .gone = "client_closed"});
  metrics.record_http({});  // an unreadable head without an answer
  ServerSnapshot server;
  server.connections_open = 5;
  server.spans_dropped = 2;
  const Exposition e = scrape(metrics, {}, server);
  EXPECT_EQ(e.at(R"(weir_http_requests_total{method="POST",route="/v1/completions",status="200"})"), 1);
  EXPECT_EQ(e.at(R"(weir_http_requests_total{method="POST",route="/v1/completions",status="429"})"), 1);
  EXPECT_EQ(e.at(R"(weir_http_requests_total{method="OTHER",route="",status="405"})"), 1);
  EXPECT_EQ(e.at(R"(weir_http_requests_total{method="",route="",status="0"})"), 1);
  EXPECT_EQ(e.at(R"(weir_http_request_seconds_count{method="POST",route="/v1/completions"})"), 2);
  EXPECT_EQ(e.at("weir_http_received_bytes_total"), 10);
  EXPECT_EQ(e.at("weir_http_sent_bytes_total"), 100);
  EXPECT_EQ(e.at(R"(weir_http_gone_total{reason="client_closed"})"), 1);
  EXPECT_EQ(e.at("weir_http_connections"), 5);
  EXPECT_EQ(e.at("weir_spans_dropped_total"), 2);
}

TEST(Metrics, LoadsAndReloadsAreCounted) {
  Metrics metrics;
  metrics.record_load("smollm2", true, 0.7);
  metrics.record_load("smollm2", false, 0);
  metrics.record_reload("keys", true);
  metrics.record_reload("keys", false);
  metrics.record_reload("keys", false);
  const Exposition e = scrape(metrics);
  EXPECT_EQ(e.at(R"(weir_model_load_seconds_bucket{model="smollm2",le="0.5"})"), 0);
  EXPECT_EQ(e.at(R"(weir_model_load_seconds_bucket{model="smollm2",le="1"})"), 1);
  EXPECT_EQ(e.at(R"(weir_model_loads_total{model="smollm2"})"), 1);
  EXPECT_EQ(e.at(R"(weir_model_unloads_total{model="smollm2"})"), 1);
  EXPECT_EQ(e.at(R"(weir_reloads_total{what="keys",result="ok"})"), 1);
  EXPECT_EQ(e.at(R"(weir_reloads_total{what="keys",result="failed"})"), 2);
}

TEST(Metrics, NamesFromOutsideCannotBreakTheText) {
  Metrics metrics;
  const std::string evil = "a\"b\\c\nd";
  RequestSample sample = good_request();
  sample.model = evil;
  metrics.record_request(sample);
  const Exposition e = scrape(metrics, {ready_model(evil)});
  EXPECT_EQ(e.at(R"(weir_ttft_seconds_count{model="a\"b\\c\nd"})"), 1);
}

TEST(Metrics, ManyNamesFallTogetherAsOther) {
  Metrics metrics;
  for (int i = 0; i < 2000; ++i) metrics.record_load("model-" + std::to_string(i), true, 1);
  const Exposition e = scrape(metrics, {});
  std::size_t models = 0;
  double loads = 0;
  for (const auto& [name, value] : e.series)
    if (name.starts_with("weir_model_loads_total")) ++models, loads += value;
  EXPECT_EQ(models, NamedTable<int>::kMost + 1);
  EXPECT_EQ(loads, 2000);
  EXPECT_EQ(e.at(R"(weir_model_loads_total{model="other"})"), 2000 - NamedTable<int>::kMost);
}

TEST(Metrics, NothingIsLostBetweenThreads) {
  Metrics metrics;
  constexpr int kThreads = 4, kEach = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&metrics, t] {
      for (int i = 0; i < kEach; ++i) {
        metrics.record_request(good_request());
        metrics.record_step("step-" + std::to_string(t % 2), {.sequences = 1, .step_s = 0.001});
        metrics.record_http({.method = "GET", .route = "/r" + std::to_string(i % 7), .status = 200});
        if (i % 500 == 0) metrics.text({}, {});
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Exposition e = scrape(metrics);
  EXPECT_EQ(e.at(R"(weir_itl_seconds_count{model="smollm2"})"), 3.0 * kThreads * kEach);
  EXPECT_EQ(e.at(R"(weir_step_seconds_count{model="step-0"})") + e.at(R"(weir_step_seconds_count{model="step-1"})"), kThreads * kEach);
  double requests = 0;
  for (const auto& [name, value] : e.series)
    if (name.starts_with("weir_http_requests_total{")) requests += value;
  EXPECT_EQ(requests, kThreads * kEach);
}

TEST(Metrics, TheProcessIsThere) {
  Metrics metrics;
  const Exposition e = scrape(metrics);
  EXPECT_GT(e.at("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(e.at("process_virtual_memory_bytes"), e.at("process_resident_memory_bytes"));
  EXPECT_GT(e.at("process_start_time_seconds"), 1.6e9);
  EXPECT_GE(e.at("process_open_fds"), 3);
  EXPECT_GE(e.at("process_max_fds"), e.at("process_open_fds"));
  EXPECT_GE(e.at("process_cpu_seconds_total"), 0);
}

TEST(Metrics, OtherReadersAcceptTheText) {
  if (std::system("python3 -c 'import prometheus_client' 2>/dev/null") != 0) GTEST_SKIP() << "prometheus_client is not installed";
  Metrics metrics;
  metrics.record_request(good_request());
  metrics.record_http({.method = "GET", .route = "/metrics", .status = 200});
  const weir::testing::TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder.path() / "metrics", metrics.text(std::vector{ready_model()}, {})));
  const std::string command =
      "python3 -c 'import sys; from prometheus_client.parser import text_string_to_metric_families as parse; "
      "assert len(list(parse(open(sys.argv[1]).read()))) > 50' " +
      (folder.path() / "metrics").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
}

// The contract with dashboards: names, types, labels and help stand in the documentation as in the table.
TEST(MetricTable, IsTheDocumentedOne) {
  const std::string text = read_file(weir::testing::data_path("../../docs/metrics.md")).value();
  std::string documented, table;
  std::size_t at = text.find("|---|---|---|---|\n") + 18;
  documented = text.substr(at, text.find("\n\n", at) + 1 - at);
  for (const MetricRow& row : metric_table()) {
    const char* kind = row.kind == MetricKind::kCounter ? "counter" : row.kind == MetricKind::kGauge ? "gauge" : "histogram";
    table += "| `" + std::string(row.name) + "` | " + kind + " | " + std::string(row.labels) + " | " + std::string(row.help) + " |\n";
  }
  EXPECT_EQ(documented, table);
}

TEST(MetricTable, NamesKeepToPrometheusRules) {
  std::set<std::string_view> names;
  for (const MetricRow& row : metric_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(testing::is_name(row.name, true)) << row.name;
    EXPECT_EQ(row.kind == MetricKind::kHistogram, !row.buckets.empty()) << row.name;
    EXPECT_TRUE(row.kind != MetricKind::kCounter || row.name.ends_with("_total")) << row.name;
    EXPECT_TRUE(std::is_sorted(row.buckets.begin(), row.buckets.end())) << row.name;
  }
}

TEST(MetricTable, BucketsOfVllmsHistogramsAreIts) {
  const auto buckets = [](std::string_view name) {
    for (const MetricRow& row : metric_table())
      if (row.name == name) return std::vector<double>(row.buckets.begin(), row.buckets.end());
    return std::vector<double>();
  };
  EXPECT_EQ(buckets("vllm:time_to_first_token_seconds"),
            (std::vector<double>{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                 1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560}));
  EXPECT_EQ(buckets("vllm:inter_token_latency_seconds"),
            (std::vector<double>{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}));
  EXPECT_EQ(buckets("vllm:e2e_request_latency_seconds"),
            (std::vector<double>{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}));
}

TEST(Histogram, ValuesOnABoundBelongToItsBucket) {
  Histogram histogram;
  histogram.set_bounds({1, 2});
  for (const double value : {0.5, 1.0, 1.5, 2.0, 2.5, -3.0, std::numeric_limits<double>::infinity()}) histogram.record(value);
  histogram.record(std::nan(""));  // is none
  const HistogramReading reading = histogram.read();
  EXPECT_EQ(reading.counts, (std::vector<std::uint64_t>{3, 2, 2}));
  EXPECT_EQ(reading.at_most(1), 3u);
  EXPECT_EQ(reading.at_most(2), 5u);
  EXPECT_EQ(reading.total(), 7u);
}

}  // namespace
}  // namespace weir::telemetry
