// SPDX-License-Identifier: Apache-2.0
// What bounds a run: summaries made by hand, one for each answer, and runs against a server whose pace is programmed.
#include "loadgen/bottleneck.h"

#include <gtest/gtest.h>

#include "loadgen/null_server.h"
#include "loadgen/runner.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

Stat flat(double value) { return Stat::of(std::vector<double>(100, value)); }

// As the server says: its queue, prefill and decode; the client saw `network` more before the first token.
Summary server_says(double queue, double prefill, double decode, double network = 0) {
  Summary s;
  s.requests = s.ok = s.good = 100;
  s.queue = flat(queue);
  s.prefill = flat(prefill);
  s.decode = flat(decode);
  s.ttft = s.ttft_sent = flat(queue + prefill + network);
  s.e2e = s.e2e_sent = flat(queue + prefill + decode + network);
  s.tpot = flat(decode / 10);
  return s;
}

Bound bound_of(const Summary& s, const BottleneckInput& input = {}) { return find_bottleneck(s, input).bound; }

TEST(Bottleneck, TheLargestPartOfAnAnswerNamesIt) {
  EXPECT_EQ(bound_of(server_says(0.8, 0.1, 0.1)), Bound::kQueue);
  EXPECT_EQ(bound_of(server_says(0.1, 0.8, 0.1)), Bound::kPrefillCompute);
  EXPECT_EQ(bound_of(server_says(0.1, 0.1, 0.8)), Bound::kDecodeBandwidth);
  EXPECT_EQ(bound_of(server_says(0.1, 0.1, 0.1, 0.7)), Bound::kNetwork);
  EXPECT_EQ(bound_of(server_says(0.25, 0.25, 0.25, 0.25)), Bound::kNotKnown);
  const Bottleneck queue = find_bottleneck(server_says(0.8, 0.1, 0.1), {});
  EXPECT_TRUE(queue.measured);
  EXPECT_NE(queue.text.find("800 ms of a mean whole answer's 1 s (80 %)"), std::string::npos) << queue.text;
  ASSERT_EQ(queue.findings.size(), 4u);
  EXPECT_NEAR(queue.findings[0].share, 0.8, 1e-9);
}

// llama.cpp's server tells prefill and decode, but not how long a request waited for a slot.
TEST(Bottleneck, AQueueThatTheServerDoesNotTellIsNoNetwork) {
  Summary s = server_says(0, 0.1, 0.2, 0.7);
  s.queue = {};
  const Bottleneck queue = find_bottleneck(s, {});
  EXPECT_EQ(queue.bound, Bound::kQueue);
  EXPECT_FALSE(queue.measured);
  EXPECT_NE(queue.text.find("as behind a queue, by 700 ms"), std::string::npos) << queue.text;
  const BottleneckInput waiting{.observed = {{"llamacpp:requests_deferred", 3, 10}}, .mfu = {}, .bandwidth_utilisation = {}};
  EXPECT_TRUE(find_bottleneck(s, waiting).measured);
}

TEST(Bottleneck, SharesOfTheMachinesLimitsMakeItMeasured) {
  BottleneckInput input;
  EXPECT_FALSE(find_bottleneck(server_says(0, 0.1, 0.9), input).measured);
  input.bandwidth_utilisation = 0.7;
  const Bottleneck decode = find_bottleneck(server_says(0, 0.1, 0.9), input);
  EXPECT_TRUE(decode.measured);
  EXPECT_NE(decode.text.find("70 % of the machine's limit"), std::string::npos);
  input.mfu = 0.2;
  EXPECT_FALSE(find_bottleneck(server_says(0, 0.9, 0.1), input).measured);
  input.mfu = 0.6;
  EXPECT_TRUE(find_bottleneck(server_says(0, 0.9, 0.1), input).measured);
}

TEST(Bottleneck, AFullCacheComesBeforeTheQueueThatItMakes) {
  const BottleneckInput full{
      .observed = {{"vllm:kv_cache_usage_perc", 0.8, 0.99}, {"vllm:num_requests_waiting", 5, 9}}, .mfu = {}, .bandwidth_utilisation = {}};
  const Bottleneck cache = find_bottleneck(server_says(0.8, 0.1, 0.1), full);
  EXPECT_EQ(cache.bound, Bound::kKvCapacity);
  EXPECT_NE(cache.text.find("80 % full on average, 99 % at most"), std::string::npos) << cache.text;
  const BottleneckInput room{.observed = {{"weir_kv_cache_use_ratio", 0.3, 0.5}}, .mfu = {}, .bandwidth_utilisation = {}};
  EXPECT_EQ(bound_of(server_says(0.8, 0.1, 0.1), room), Bound::kQueue);
}

TEST(Bottleneck, TheGeneratorItselfComesFirst) {
  Summary s = server_says(0.8, 0.1, 0.1);
  s.cpu_share = 0.97;
  EXPECT_EQ(bound_of(s), Bound::kQueue);  // as long as the result is valid
  s.valid = false;
  s.reasons = {"busy"};
  EXPECT_EQ(bound_of(s), Bound::kClient);
  EXPECT_NE(find_bottleneck(s, {}).text.find("busy"), std::string::npos);
}

TEST(Bottleneck, ItSaysWhenTheFiguresDoNotTell) {
  EXPECT_EQ(bound_of({}), Bound::kNotKnown);
  Summary whole;  // answers without streaming, and no times from the server
  whole.requests = whole.ok = 100;
  whole.e2e = whole.e2e_sent = flat(1);
  const Bottleneck unknown = find_bottleneck(whole, {});
  EXPECT_EQ(unknown.bound, Bound::kNotKnown);
  EXPECT_NE(to_text(unknown).find("not known"), std::string::npos);
  whole.waited_share = 0.9;  // but the cap on connections is the client's own matter
  whole.e2e = flat(3);
  EXPECT_EQ(bound_of(whole), Bound::kQueue);
  // Prompts of very different lengths: a late first token may be a long prefill.
  Summary mixed = whole;
  mixed.waited_share = 0;
  mixed.e2e = mixed.e2e_sent = flat(1);
  mixed.ttft = mixed.ttft_sent = flat(0.9);
  mixed.prompt_length = Stat::of({1, 1000, 1, 1000});
  EXPECT_EQ(bound_of(mixed), Bound::kNotKnown);
}

TEST(Bottleneck, ObservationsAndWorkAreReadFromTheRunsJson) {
  const json::Object seen{
      {"observations",
       json::Object{{"series", json::Array{json::Object{{"name", "x"}, {"v", {1, 2, 6}}}, json::Object{{"name", "y"}, {"v", "?"}}, 7}}}},
      {"work", json::Object{{"mfu", 0.25}, {"bandwidth_utilisation", "much"}}}};
  const BottleneckInput input = bottleneck_input(seen);
  ASSERT_EQ(input.observed.size(), 1u);
  EXPECT_EQ(input.observed[0].name, "x");
  EXPECT_DOUBLE_EQ(input.observed[0].mean, 3);
  EXPECT_DOUBLE_EQ(input.observed[0].max, 6);
  EXPECT_DOUBLE_EQ(*input.mfu, 0.25);
  EXPECT_FALSE(input.bandwidth_utilisation);
}

TEST(Bottleneck, WhatTheObserverWorkedOutGoesBeforeBareValues) {
  const auto gauge = [](const char* name, json::Value mean, json::Value max) {
    return json::Object{{"name", name}, {"kind", "gauge"}, {"mean", std::move(mean)}, {"max", std::move(max)}, {"v", {100, 100}}};
  };
  const json::Object counter{{"name", "vllm:num_preemptions_total"}, {"kind", "counter"}, {"increase", 12.0}, {"v", {500, 512}}};
  const json::Object seen{
      {"observations",
       json::Object{{"series", json::Array{gauge("vllm:kv_cache_usage_perc", 0.5, 0.6),
                                           gauge("vllm:kv_cache_usage_perc", 0.9, 0.97),  // of another engine
                                           gauge("vllm:num_requests_waiting", 2.0, 3.0), gauge("vllm:num_requests_waiting", 4.0, 5.0),
                                           gauge("weir_requests_waiting", nullptr, nullptr), counter}}}}};
  const BottleneckInput input = bottleneck_input(seen);
  ASSERT_EQ(input.observed.size(), 5u);  // a gauge without a reading in the run tells nothing
  const Bottleneck full = find_bottleneck(server_says(0.8, 0.1, 0.1), input);
  EXPECT_EQ(full.bound, Bound::kKvCapacity);
  EXPECT_NE(full.text.find("90 % full on average, 97 % at most"), std::string::npos) << full.text;
  EXPECT_NE(full.text.find("12 sequences were put back"), std::string::npos) << full.text;
  EXPECT_NE(to_text(full).find("vllm:num_requests_waiting was 6.0 on average, 8 at most"), std::string::npos) << to_text(full);
}

// Against the null server. The result's own verdict on the generator is put aside: a loaded machine may have delayed it.
Bottleneck measure(Duration ttft, Duration itl, int slots, int requests, Duration gap, bool timings) {
  NullServerOptions options;
  options.ttft = Distribution::constant(to_seconds(ttft));
  options.itl = Distribution::constant(to_seconds(itl));
  options.tokens = Distribution::constant(5);
  options.slots = slots;
  auto server = NullServer::start(std::move(options));
  EXPECT_TRUE(server);
  LoadPlan plan;
  plan.shape.model = "null";
  plan.shape.timings = timings;
  plan.conversations = {{{{.content = message("user", "one two"), .max_tokens = 5}}}};
  for (int i = 0; i < requests; ++i) plan.arrivals.push_back(gap * i);
  const auto target = Target::resolve({.url = (*server)->address(), .chat = true, .headers = {}, .api_key = {}, .tls = {}});
  Progress progress;
  const auto result = run(plan, *target, {}, progress);
  EXPECT_TRUE(result);
  EXPECT_EQ(progress.ttft.count(), static_cast<std::uint64_t>(requests));
  EXPECT_EQ(progress.itl.count(), static_cast<std::uint64_t>(4 * requests));
  Summary summary = summarize(*result, {});
  summary.valid = true;
  return find_bottleneck(summary, {});
}

TEST(Bottleneck, AServerWithOneSlotHasAQueue) {
  // 20 at once, each takes 54 ms: the mean one waits for half of the others.
  for (const bool timings : {true, false}) {
    const Bottleneck queue = measure(50ms, 1ms, 1, 20, 0ms, timings);
    EXPECT_EQ(queue.bound, Bound::kQueue) << to_text(queue);
    EXPECT_EQ(queue.measured, timings);
  }
}

TEST(Bottleneck, SlowFirstTokensArePrefillAndSlowOthersDecoding) {
  EXPECT_EQ(measure(1500ms, 1ms, 0, 8, 5ms, true).bound, Bound::kPrefillCompute);
  EXPECT_EQ(measure(1ms, 400ms, 0, 8, 5ms, true).bound, Bound::kDecodeBandwidth);
}

}  // namespace
}  // namespace weir::loadgen
