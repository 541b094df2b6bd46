// SPDX-License-Identifier: Apache-2.0
// One request through the observer: metrics, one line of the log, one trace.
#include "serving/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "base/file_io.h"
#include "base/json.h"
#include "base/testing.h"
#include "http/http_test_support.h"

namespace weir::serving {
namespace {

using namespace std::chrono_literals;

RequestRecord request(std::uint64_t http_id) {
  RequestRecord r;
  r.http_id = http_id;
  r.id = "chatcmpl-" + std::to_string(http_id);
  r.endpoint = "/v1/chat/completions";
  r.model = "smollm2";
  r.caller = "alice";
  r.tenant = "research";
  r.status = 200;
  r.streamed = true;
  r.finish_reasons = {"stop"};
  r.usage = {.prompt_tokens = 12, .completion_tokens = 3, .cached_tokens = 8};
  r.timings = {.queue_ms = 1, .prefill_ms = 9, .decode_ms = 40, .ttft_ms = 10, .total_ms = 50};
  r.received = steady_clock().now() - 50ms;
  r.token_times = {10ms, 30ms, 50ms};
  r.prompt = "a secret prompt";
  return r;
}

http::AccessRecord access(std::uint64_t http_id, int status = 200) {
  http::AccessRecord a;
  a.request_id = http_id;
  a.method = "POST";
  a.route = "/v1/chat/completions";
  a.target = "/v1/chat/completions?key=sk-secret";
  a.peer = "127.0.0.1:4711";
  a.status = status;
  a.bytes_out = 1000;
  a.total = 51ms;
  a.streamed = true;
  return a;
}

std::vector<json::Object> lines_of(const std::filesystem::path& file) {
  std::vector<json::Object> lines;
  std::string text = read_file(file).value_or("");
  for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
    lines.push_back(json::parse(text.substr(0, end), "line")->get_object());
  return lines;
}

TEST(Recorder, MakesOneLineOfBothRecords) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "access.log";
  {
    RecorderOptions options;
    options.access_log.file = file;
    auto recorder = Recorder::start(options);
    ASSERT_TRUE(recorder) << recorder.error().message;
    (*recorder)->on_request(request(1));
    (*recorder)->on_request(request(2));
    (*recorder)->on_http(access(2));
    (*recorder)->on_http(access(1));
    (*recorder)->on_http(access(3, 404));  // of no model
  }
  const auto lines = lines_of(file);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].at("id"), "chatcmpl-2");
  EXPECT_EQ(lines[0].at("method"), "POST");
  EXPECT_EQ(lines[0].at("key"), "alice");
  EXPECT_EQ(lines[0].at("tenant"), "research");
  EXPECT_EQ(lines[0].at("generated_tokens"), 3);
  EXPECT_EQ(lines[0].at("total_ms"), 51.0);
  EXPECT_EQ(lines[1].at("id"), "chatcmpl-1");
  EXPECT_EQ(lines[2].at("status"), 404);
  EXPECT_FALSE(lines[2].contains("model"));
  EXPECT_EQ(read_file(file)->find("secret"), std::string::npos);  // neither prompts nor targets
}

TEST(Recorder, WhatTheWireNeverEndedIsWrittenAtTheEnd) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "access.log";
  {
    RecorderOptions options;
    options.access_log.file = file;
    auto recorder = Recorder::start(options);
    ASSERT_TRUE(recorder);
    for (std::uint64_t id = 1; id <= 10; ++id) (*recorder)->on_request(request(id));
  }
  EXPECT_EQ(lines_of(file).size(), 10u);
}

TEST(Recorder, TextsAreForThoseWhoAsk) {
  const testing::TemporaryFolder folder;
  RecorderOptions options;
  EXPECT_FALSE(Recorder::start(options).value()->wants_text());
  options.access_log.file = folder.path() / "access.log";
  EXPECT_FALSE(Recorder::start(options).value()->wants_text());
  options.access_log.prompts = true;
  {
    auto recorder = Recorder::start(options);
    EXPECT_TRUE((*recorder)->wants_text());
    (*recorder)->on_request(request(1));
    (*recorder)->on_http(access(1));
  }
  EXPECT_EQ(lines_of(options.access_log.file).at(0).at("prompt"), "a secret prompt");
}

TEST(Recorder, MetricsHoldRequestsStepsAndEngines) {
  auto recorder = Recorder::start({});
  ASSERT_TRUE(recorder);
  (*recorder)->on_request(request(1));
  RequestRecord refused = request(2);
  refused.usage = {};
  refused.timings = {.total_ms = 6};  // by a full queue, say: no latency of a model
  refused.status = 400;
  refused.error_code = "context_length_exceeded";
  refused.finish_reasons = {};
  refused.token_times = {};
  (*recorder)->on_request(refused);
  (*recorder)->on_http(access(1));
  (*recorder)->on_step("smollm2", {.number = 1, .sequences = 4, .decode_positions = 4, .elapsed = 3ms, .forward = 2ms, .choosing = 100us});
  (*recorder)->on_load("smollm2", true, 700ms);
  (*recorder)->note_reload("keys", false);
  engine::ServiceStats stats;
  stats.scheduler.running = 4;
  stats.scheduler.waiting = 2;
  stats.cache.pools = {{.capacity = 100, .used = 25}, {.capacity = 0}};
  stats.cache.asked_tokens = 12;
  stats.cache.found_tokens = 8;
  stats.generated_tokens = 3;
  http::ServerStats http;
  http.connections_open = 9;
  ModelState model{.name = "smollm2", .state = "ready", .bytes = 1000, .stats = &stats, .block_tokens = 32, .cache_blocks = 100};
  model.adapters = {"sql"};
  const http::Response response = (*recorder)->metrics({model}, http);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  for (const char* line :
       {R"(weir_ttft_seconds_count{model="smollm2"} 1)", R"(weir_itl_seconds_count{model="smollm2"} 2)",
        R"(weir_e2e_seconds_count{model="smollm2"} 1)", R"(weir_queue_seconds_count{model="smollm2"} 1)",
        R"(weir_itl_seconds_sum{model="smollm2"} 0.04)", R"(weir_requests_total{model="smollm2",outcome="failed"} 1)",
        R"(weir_step_seconds_count{model="smollm2"} 1)", R"(weir_model_loads_total{model="smollm2"} 1)",
        R"(vllm:num_requests_running{model_name="smollm2",engine="0"} 4)",
        R"(vllm:num_requests_waiting{model_name="smollm2",engine="0"} 2)",
        R"(vllm:kv_cache_usage_perc{model_name="smollm2",engine="0"} 0.25)",
        R"(vllm:prefix_cache_hits_total{model_name="smollm2",engine="0"} 8)",
        R"(vllm:generation_tokens_total{model_name="smollm2",engine="0"} 3)",
        R"(weir_http_requests_total{method="POST",route="/v1/chat/completions",status="200"} 1)",
        R"(weir_reloads_total{what="keys",result="failed"} 1)", "weir_http_connections 9", "running_lora_adapters=\"sql\""})
    EXPECT_NE(response.body.find(line), std::string::npos) << line;
}

// A collector that keeps bodies.
struct Collector {
  std::mutex mutex;
  std::vector<std::string> bodies;
  std::unique_ptr<http::Server> server = http::testing::start_server(
      {}, {http::testing::route("POST", "/v1/traces", [this](http::Request r, const http::Responder& responder) {
        const std::lock_guard lock(mutex);
        bodies.push_back(std::move(r.body));
        responder.respond(http::Response::json(200, "{}"));
      })});
};

TEST(Recorder, TracesFollowTheCallersContextAndItsSampledFlag) {
  Collector collector;
  RecorderOptions options;
  options.spans.endpoint = "http://" + collector.server->addresses().front() + "/v1/traces";
  options.spans.sample_ratio = 0;
  options.server_address = "127.0.0.1:8080";
  {
    auto recorder = Recorder::start(options);
    ASSERT_TRUE(recorder) << recorder.error().message;
    RequestRecord sampled = request(1), unsampled = request(2), alone = request(3);
    sampled.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    unsampled.traceparent = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    for (const RequestRecord* record : {&sampled, &unsampled, &alone}) {
      (*recorder)->on_request(*record);
      (*recorder)->on_http(access(record->http_id));
    }
  }
  ASSERT_EQ(collector.bodies.size(), 1u);
  const std::string& body = collector.bodies[0];
  EXPECT_NE(body.find("0af7651916cd43dd8448eb211c80319c"), std::string::npos);
  EXPECT_EQ(body.find("1af7651916cd43dd8448eb211c80319c"), std::string::npos);
  for (const char* part : {"\"chat smollm2\"", "\"prefill\"", "\"decode\"", "\"127.0.0.1\"", "gen_ai.usage.output_tokens"})
    EXPECT_NE(body.find(part), std::string::npos) << part;
  EXPECT_EQ(body.find("secret"), std::string::npos);
}

TEST(Recorder, BadOptionsAreErrors) {
  RecorderOptions log;
  log.access_log.file = "/does/not/exist/access.log";
  EXPECT_FALSE(Recorder::start(log));
  RecorderOptions spans;
  spans.spans.endpoint = "collector:4318";
  EXPECT_FALSE(Recorder::start(spans));
}

}  // namespace
}  // namespace weir::serving
