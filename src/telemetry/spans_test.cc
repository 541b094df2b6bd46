// SPDX-License-Identifier: Apache-2.0
// Spans at a collector's stub: what arrives, how it is batched, and what happens when the collector is slow, failing or gone.
#include "telemetry/spans.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

#include "base/json.h"
#include "http/http_test_support.h"
#include "telemetry/request_trace.h"

namespace weir::telemetry {
namespace {

using namespace std::chrono_literals;
using http::testing::eventually;

// Keeps what is posted to /v1/traces, and answers as told.
class Collector {
 public:
  Collector() {
    server_ = http::testing::start_server(
        {}, {http::testing::route("POST", "/v1/traces", [this](http::Request request, http::Responder responder) {
          const std::lock_guard lock(mutex_);
          requests_.push_back(std::move(request));
          if (hold_) {
            held_.push_back(std::move(responder));
            return;
          }
          const int status = statuses_.empty() ? 200 : statuses_.front();
          if (!statuses_.empty()) statuses_.erase(statuses_.begin());
          responder.respond(http::Response::json(status, answer_));
        })});
  }
  std::string url() const { return "http://" + server_->addresses().front() + "/v1/traces"; }
  void answer(std::vector<int> statuses, std::string body = "{}") {
    const std::lock_guard lock(mutex_);
    statuses_ = std::move(statuses);
    answer_ = std::move(body);
  }
  void hold(bool on) {
    const std::lock_guard lock(mutex_);
    hold_ = on;
    for (const http::Responder& responder : std::exchange(held_, {})) responder.respond(http::Response::json(200, "{}"));
  }
  std::vector<http::Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<http::Request> requests_;
  std::vector<int> statuses_;
  std::string answer_ = "{}";
  bool hold_ = false;
  std::vector<http::Responder> held_;
  std::unique_ptr<http::Server> server_;
};

Span span(std::string name) {
  return {
      .trace_id = std::string(32, 'a'), .span_id = random_span_id(), .parent_id = {}, .name = std::move(name), .start_ns = 1, .end_ns = 2};
}

std::unique_ptr<SpanExporter> start(SpanOptions options) {
  auto exporter = SpanExporter::start(std::move(options));
  EXPECT_TRUE(exporter) << exporter.error().message;
  return exporter ? std::move(*exporter) : nullptr;
}

json::Array spans_in(const std::string& body) {
  const auto value = json::parse(body, "export");
  if (!value) return {};
  return value->at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").as_array();
}

TEST(SpanExporter, SendsBatchesAsOtlpJsonWithItsHeaders) {
  Collector collector;
  SpanOptions options{.endpoint = collector.url(), .headers = {{"Authorization", "Bearer k"}}, .service_name = "weir-test"};
  options.batch = 3;
  auto exporter = start(options);
  for (int i = 0; i < 7; ++i) exporter->push({span("s" + std::to_string(i))});
  exporter->flush(10s);
  const auto requests = collector.requests();
  std::vector<std::string> names;
  for (const http::Request& request : requests) {
    EXPECT_EQ(request.header("Content-Type"), "application/json");
    EXPECT_EQ(request.header("Authorization"), "Bearer k");
    const json::Array spans = spans_in(request.body);
    EXPECT_LE(spans.size(), 3u);
    for (const json::Value& each : spans) names.emplace_back(each.at("name").as_string());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"s0", "s1", "s2", "s3", "s4", "s5", "s6"}));
  const auto resource = json::parse(requests.at(0).body, "export")->at("resourceSpans").at(0).at("resource").at("attributes");
  EXPECT_EQ(resource.at(0).at("key"), "service.name");
  EXPECT_EQ(resource.at(0).at("value").at("stringValue"), "weir-test");
  EXPECT_EQ(exporter->stats().exported, 7u);
  EXPECT_EQ(exporter->stats().dropped, 0u);
}

TEST(SpanExporter, ASmallBatchGoesAfterItsInterval) {
  Collector collector;
  SpanOptions options{.endpoint = collector.url()};
  options.interval = 20ms;
  auto exporter = start(options);
  exporter->push({span("one")});
  EXPECT_TRUE(eventually([&] { return exporter->stats().exported == 1; }));
}

TEST(SpanExporter, AFullQueueDropsWholeRequestsAndCountsThem) {
  Collector collector;
  collector.hold(true);
  SpanOptions options{.endpoint = collector.url(), .max_queued = 4, .batch = 2};
  auto exporter = start(options);
  exporter->push({span("sent"), span("sent")});
  ASSERT_TRUE(eventually([&] { return collector.requests().size() == 1; }));  // and is held there
  exporter->push({span("a"), span("b"), span("c")});
  exporter->push({span("d"), span("e")});  // only one would fit
  exporter->push({span("f")});
  EXPECT_EQ(exporter->stats().dropped, 2u);
  collector.hold(false);
  exporter->flush(10s);
  EXPECT_EQ(exporter->stats().exported, 6u);
}

TEST(SpanExporter, TriesAgainWhatMayWorkLaterAndDropsTheRest) {
  Collector collector;
  auto exporter = start({.endpoint = collector.url()});
  collector.answer({503, 429, 200});
  exporter->push({span("at last")});
  exporter->flush(10s);
  EXPECT_EQ(collector.requests().size(), 3u);
  EXPECT_EQ(exporter->stats().exported, 1u);
  collector.answer({400});
  exporter->push({span("never"), span("never")});
  exporter->flush(10s);
  EXPECT_EQ(collector.requests().size(), 4u);
  EXPECT_EQ(exporter->stats().exported, 1u);
  EXPECT_EQ(exporter->stats().dropped, 2u);
  EXPECT_EQ(exporter->stats().failed_exports, 1u);
}

TEST(SpanExporter, SpansThatTheCollectorRefusesAreDropped) {
  Collector collector;
  collector.answer({}, R"({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "old"}})");
  auto exporter = start({.endpoint = collector.url()});
  exporter->push({span("a"), span("b"), span("c")});
  exporter->flush(10s);
  EXPECT_EQ(exporter->stats().exported, 1u);
  EXPECT_EQ(exporter->stats().dropped, 2u);
}

TEST(SpanExporter, EndsInTimeWithoutACollector) {
  SpanOptions options{.endpoint = "http://127.0.0.1:9/v1/traces", .batch = 1};
  options.timeout = 200ms;
  auto exporter = start(options);
  for (int i = 0; i < 100; ++i) exporter->push({span("lost")});
  exporter.reset();  // would take minutes if each were tried
}

TEST(SpanExporter, ABadEndpointIsAnError) {
  for (const char* url : {"", "localhost:4317", "ftp://x/", "http://"}) EXPECT_FALSE(SpanExporter::start({.endpoint = url})) << url;
}

RequestTrace chat_trace() {
  RequestTrace t;
  t.context = begin_trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 0);
  t.operation = "chat";
  t.method = "POST";
  t.route = "/v1/chat/completions";
  t.server = "[::1]:8080";
  t.peer = "127.0.0.1:4711";
  t.request_id = "chatcmpl-1";
  t.request_model = "smollm2";
  t.status = 200;
  t.prompt_tokens = 12;
  t.cached_tokens = 4;
  t.generated_tokens = 34;
  t.temperature = 0.5;
  t.finish_reasons = {"stop"};
  t.start_unix_ns = 1'700'000'000'000'000'000;
  t.total_s = 1;
  t.before_queue_s = 0.01;
  t.queue_s = 0.04;
  t.prefill_s = 0.15;
  t.decode_s = 0.7;
  t.ttft_s = 0.2;
  return t;
}

std::map<std::string, json::Value> attributes_of(const json::Value& span) {
  std::map<std::string, json::Value> attributes;
  for (const json::Value& each : span.at("attributes").as_array())
    attributes[std::string(each.at("key").as_string())] = each.at("value").as_object().begin()->value();
  return attributes;
}

TEST(RequestSpans, FollowTheConventionsForGenerativeAi) {
  const std::string body = otlp_json(request_spans(chat_trace()), {});
  const json::Array spans = spans_in(body);
  ASSERT_EQ(spans.size(), 4u);
  const json::Value& root = spans[0];
  EXPECT_EQ(root.at("traceId"), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(root.at("parentSpanId"), "b7ad6b7169203331");
  EXPECT_EQ(root.at("name"), "chat smollm2");
  EXPECT_EQ(root.at("kind"), 2);
  EXPECT_EQ(root.at("startTimeUnixNano"), "1700000000000000000");
  EXPECT_EQ(root.at("endTimeUnixNano"), "1700000001000000000");
  auto attributes = attributes_of(root);
  EXPECT_EQ(attributes["gen_ai.operation.name"], "chat");
  EXPECT_EQ(attributes["gen_ai.request.model"], "smollm2");
  EXPECT_EQ(attributes["gen_ai.usage.input_tokens"], "12");  // 64-bit integers are text
  EXPECT_EQ(attributes["gen_ai.usage.output_tokens"], "34");
  EXPECT_EQ(attributes["gen_ai.request.temperature"], 0.5);
  EXPECT_EQ(attributes["gen_ai.response.finish_reasons"], json::parse(R"({"values": [{"stringValue": "stop"}]})", "").value());
  EXPECT_EQ(attributes["server.address"], "::1");
  EXPECT_EQ(attributes["server.port"], "8080");
  EXPECT_EQ(attributes["client.address"], "127.0.0.1");
  EXPECT_EQ(attributes["http.response.status_code"], "200");
  EXPECT_EQ(attributes.count("gen_ai.request.max_tokens"), 0u);
  EXPECT_EQ(root.at("events").at(0).at("name"), "gen_ai.first_token");
  EXPECT_FALSE(root.as_object().contains("status"));
}

TEST(RequestSpans, PartsFollowEachOtherBeneathTheRequest) {
  const std::vector<Span> spans = request_spans(chat_trace());
  const std::int64_t begin = spans[0].start_ns;
  const char* names[] = {"queue", "prefill", "decode"};
  const double starts[] = {0.01, 0.05, 0.2}, ends[] = {0.05, 0.2, 0.9};
  for (int i = 0; i < 3; ++i) {
    const Span& part = spans[static_cast<std::size_t>(i) + 1];
    EXPECT_EQ(part.name, names[i]);
    EXPECT_EQ(part.parent_id, spans[0].span_id);
    EXPECT_EQ(part.trace_id, spans[0].trace_id);
    EXPECT_NEAR(static_cast<double>(part.start_ns - begin), starts[i] * 1e9, 10);
    EXPECT_NEAR(static_cast<double>(part.end_ns - begin), ends[i] * 1e9, 10);
  }
}

TEST(RequestSpans, OnlyTheServersFaultsAreErrors) {
  RequestTrace trace = chat_trace();
  trace.queue_s = trace.prefill_s = trace.decode_s = -1;
  trace.status = 400;
  trace.error_code = "invalid_value";
  EXPECT_FALSE(request_spans(trace)[0].failed);
  EXPECT_EQ(request_spans(trace).size(), 1u);  // it never ran
  trace.status = 503;
  EXPECT_TRUE(request_spans(trace)[0].failed);
  trace.status = 200;  // broke in the middle of its stream
  EXPECT_TRUE(request_spans(trace)[0].failed);
}

TEST(BeginTrace, ObeysTheCallersFlagAndElseTheRatio) {
  const std::string id = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
  EXPECT_TRUE(begin_trace("00-" + id + "-01", 0).sampled);
  EXPECT_FALSE(begin_trace("00-" + id + "-00", 1).sampled);
  for (const char* broken : {"", "00-xyz", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}) {
    EXPECT_TRUE(begin_trace(broken, 1).sampled);
    EXPECT_FALSE(begin_trace(broken, 0).sampled);
    EXPECT_TRUE(begin_trace(broken, 1).span_id.empty());
    EXPECT_EQ(begin_trace(broken, 1).trace_id.size(), 32u);
  }
  int sampled = 0;
  for (int i = 0; i < 10000; ++i) sampled += begin_trace("", 0.25).sampled;
  EXPECT_NEAR(sampled, 2500, 300);  // seven standard deviations
  EXPECT_NE(begin_trace("", 1).trace_id, begin_trace("", 1).trace_id);
}

}  // namespace
}  // namespace weir::telemetry
