// SPDX-License-Identifier: Apache-2.0
// Figures from records made by hand: nothing here runs, so every right answer is exact.
#include "loadgen/metrics.h"

#include <gtest/gtest.h>

#include "loadgen/compare.h"
#include "loadgen/random.h"
#include "loadgen/report.h"
#include "loadgen/search.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

// Sent at once, first token after `ttft`, then `tokens` - 1 more, `itl` apart.
RequestRecord record(Duration scheduled, Duration ttft, Duration itl, int tokens, Duration late = 0ns) {
  RequestRecord r;
  r.scheduled = r.eligible = scheduled;
  r.started = r.sent = scheduled + late;
  r.first_token = r.sent + ttft;
  r.gaps.assign(static_cast<std::size_t>(tokens - 1), itl);
  r.last_token = r.done = r.first_token + itl * (tokens - 1);
  r.events = r.output_tokens = tokens;
  r.prompt_tokens = 10;
  r.outcome = Outcome::kOk;
  r.status = 200;
  return r;
}

RunResult result_of(std::vector<RequestRecord> records) {
  RunResult result;
  for (const RequestRecord& r : records) result.length = std::max(result.length, r.done);
  result.records = std::move(records);
  return result;
}

// One connection, a server that takes `service` for each: what the generator's queue does, by arithmetic.
RunResult one_connection(int requests, Duration gap, Duration service) {
  std::vector<RequestRecord> records;
  Duration free{};
  for (int i = 0; i < requests; ++i) {
    RequestRecord r = record(gap * i, service, 0ns, 1);
    r.eligible = r.started = r.sent = std::max(r.scheduled, free);
    r.first_token = r.last_token = r.done = free = r.sent + service;
    records.push_back(std::move(r));
  }
  return result_of(std::move(records));
}

TEST(Metrics, CoordinatedOmissionIsNotCommitted) {
  // 10 requests/s, 8 requests, one connection. A tool that forgets the wait reports the service time for every request.
  const Summary s = summarize(one_connection(8, 100ms, 500ms), {});
  EXPECT_NEAR(s.e2e.mean, 1.900, 1e-9);  // 500 + 400 k, k = 0..7
  EXPECT_NEAR(s.e2e.at(99), 3.272, 1e-9);
  EXPECT_NEAR(s.e2e.max, 3.300, 1e-9);
  EXPECT_NEAR(s.e2e_sent.mean, 0.500, 1e-9);
  EXPECT_DOUBLE_EQ(s.waited_share, 7.0 / 8);
  // The published case: its server took 507.25 ms in truth.
  const Summary published = summarize(one_connection(8, 100ms, 507250us), {});
  EXPECT_NEAR(published.e2e.mean, 1.932, 0.001);
  EXPECT_NEAR(published.e2e.at(99), 3.330, 0.001);
}

TEST(Metrics, EachFigureOfARegularRun) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 200; ++i) records.push_back(record(50ms * i, 200ms, 10ms, 21, 5us));
  const Summary s = summarize(result_of(std::move(records)), {});
  EXPECT_NEAR(s.ttft.at(50), 0.200005, 1e-9);  // from the scheduled moment
  EXPECT_NEAR(s.ttft_sent.at(50), 0.2, 1e-9);
  EXPECT_NEAR(s.itl.mean, 0.01, 1e-12);
  EXPECT_EQ(s.itl.count, 4000u);
  EXPECT_NEAR(s.tpot.at(99), 0.01, 1e-9);
  EXPECT_NEAR(s.e2e.mean, 0.400005, 1e-9);
  EXPECT_NEAR(s.per_user.mean, 100, 1e-6);
  EXPECT_NEAR(s.offered_rate, 20, 1e-9);
  EXPECT_NEAR(s.length_s, 199 * 0.05 + 0.400005, 1e-9);
  EXPECT_NEAR(s.request_rate, 200 / s.length_s, 1e-9);
  EXPECT_NEAR(s.output_tokens_per_s, 4200 / s.length_s, 1e-6);
  EXPECT_NEAR(s.total_tokens_per_s, 6200 / s.length_s, 1e-6);
  EXPECT_NEAR(s.late.at(99), 5e-6, 1e-12);
  EXPECT_TRUE(s.valid) << (s.reasons.empty() ? "" : s.reasons[0]);
}

TEST(Metrics, TpotCountsTokensWhereEventsHoldSeveral) {
  RequestRecord r = record(0ns, 100ms, 20ms, 5);
  r.output_tokens = 9;
  EXPECT_NEAR(tpot_s(r), 0.08 / 8, 1e-12);
  r.output_tokens = -1;
  EXPECT_NEAR(tpot_s(r), 0.08 / 4, 1e-12);
  EXPECT_EQ(tpot_s(record(0ns, 100ms, 20ms, 1)), -1);
}

TEST(Metrics, GoodputWantsAllObjectivesInTheSameRequest) {
  std::vector<RequestRecord> records;
  records.push_back(record(0ms, 100ms, 10ms, 11));    // good
  records.push_back(record(100ms, 600ms, 10ms, 11));  // late first token
  records.push_back(record(200ms, 100ms, 60ms, 11));  // slow tokens
  records.push_back(record(300ms, 100ms, 10ms, 11));
  records.back().outcome = Outcome::kCut;  // not good, however quick
  MetricOptions options;
  options.slo = *Slo::parse("ttft=500ms,tpot=50ms");
  const Summary s = summarize(result_of(std::move(records)), options);
  EXPECT_EQ(s.good, 1u);
  EXPECT_EQ(s.ok, 3u);
  EXPECT_NEAR(s.goodput, 1 / s.length_s, 1e-12);
  EXPECT_EQ(s.outcomes[static_cast<std::size_t>(Outcome::kCut)], 1u);
  RequestRecord stalled = record(0ms, 100ms, 10ms, 50);
  stalled.gaps[20] = 300ms;
  EXPECT_TRUE(is_good(stalled, *Slo::parse("tpot:50")));  // a plain number is in ms, as vLLM's --goodput has it
  EXPECT_FALSE(is_good(stalled, *Slo::parse("itl=200ms")));
  for (const char* bad : {"", "ttft", "ttft=", "speed=5ms", "ttft=5ms,"}) EXPECT_FALSE(Slo::parse(bad)) << bad;
}

TEST(Metrics, FailedRequestsDoNotPoisonLatencies) {
  std::vector<RequestRecord> records{record(0ms, 100ms, 10ms, 3)};
  RequestRecord failed;
  failed.scheduled = failed.eligible = 10ms;
  failed.outcome = Outcome::kConnect;
  records.push_back(failed);
  const Summary s = summarize(result_of(std::move(records)), {});
  EXPECT_EQ(s.ttft.count, 1u);
  EXPECT_GT(s.ttft.min, 0);
  EXPECT_GT(s.e2e.min, 0);
}

TEST(Validity, AGeneratorThatWasLateSaysSo) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 200; ++i) records.push_back(record(10ms * i, 50ms, 5ms, 5, i % 20 == 0 ? 8ms : 10us));
  const Summary s = summarize(result_of(std::move(records)), {});
  EXPECT_FALSE(s.valid);
  ASSERT_FALSE(s.reasons.empty());
  EXPECT_NE(s.reasons[0].find("late"), std::string::npos);
  EXPECT_NE(to_text(s, {}, {}).find("INVALID"), std::string::npos);
}

TEST(Validity, WaitingForTheCapOrConnectingIsNotTheGeneratorsFault) {
  EXPECT_TRUE(summarize(one_connection(200, 100ms, 500ms), {}).valid);
  RequestRecord r = record(0ms, 50ms, 5ms, 5);
  r.connected = 30ms;
  r.sent = 30ms + 20us;
  EXPECT_EQ(r.late(), 20us);
}

TEST(Validity, BusyThreadsLocalErrorsAndNothingAnswered) {
  RunResult busy = result_of({record(0ms, 50ms, 5ms, 5)});
  busy.workers.push_back({.wall_s = 10, .cpu_s = 9.8, .spun_s = 0.2, .run_queue_s = 0});
  EXPECT_FALSE(summarize(busy, {}).valid);
  busy.workers[0].spun_s = 5;  // watching the clock is not work
  EXPECT_TRUE(summarize(busy, {}).valid);
  RunResult local = result_of({record(0ms, 50ms, 5ms, 5)});
  local.records.emplace_back().outcome = Outcome::kLocal;
  EXPECT_FALSE(summarize(local, {}).valid);
  EXPECT_FALSE(summarize(result_of({}), {}).valid);
}

TEST(SteadyState, WarmUpAndDrainAreCut) {
  std::vector<RequestRecord> records;
  Random random(4);
  for (int i = 0; i < 1000; ++i) {
    const double warm = i < 100 ? 0.5 * (100 - i) / 100 : 0;  // caches fill
    records.push_back(record(10ms * i, Duration(static_cast<std::int64_t>((0.1 + warm + random.exponential(0.01)) * 1e9)), 5ms, 11));
  }
  const Steady t = find_steady(result_of(std::move(records)), {});
  ASSERT_TRUE(t.found) << t.why_not;
  EXPECT_GE(t.warm_up, 60u);
  EXPECT_LE(t.warm_up, 200u);
  EXPECT_GE(t.drained, 5u);
  ASSERT_TRUE(t.ttft_mean.interval);
  EXPECT_LE(t.ttft_mean.interval->low, 0.112);
  EXPECT_GE(t.ttft_mean.interval->high, 0.109);
  EXPECT_LT(t.ttft_mean.interval->high - t.ttft_mean.interval->low, 0.01);
  EXPECT_NEAR(t.request_rate.value, 100, 2);
  EXPECT_NEAR(t.output_tokens_per_s.value, 1100, 25);
}

TEST(SteadyState, AGrowingQueueHasNone) {
  const Steady t = find_steady(one_connection(400, 100ms, 500ms), {});
  EXPECT_FALSE(t.found);
  EXPECT_FALSE(t.why_not.empty());
  EXPECT_FALSE(find_steady(one_connection(50, 100ms, 50ms), {}).found);  // too few
}

TEST(StabilityRule, ThreeWindowsAsInPerfAnalyzer) {
  const auto run = [](auto latency_at, auto gap_at) {
    std::vector<RequestRecord> records;
    for (Duration at{}; at < 60s; at += gap_at(at)) records.push_back(record(at, latency_at(at), 0ns, 1));
    return find_stability(result_of(std::move(records)), {});
  };
  const auto even = [](Duration) { return Duration(50ms); };
  EXPECT_EQ(run([](Duration) { return Duration(100ms); }, even).windows, 3);
  EXPECT_EQ(run([](Duration) { return Duration(100ms); }, even).state, Stability::State::kStable);
  // Latency falls by a fifth per window for 20 s, then stays: windows 4, 5 and 6 are the first to agree.
  const Stability later = run([](Duration at) { return at < 20s ? Duration(400ms) - at / 100 : Duration(100ms); }, even);
  EXPECT_EQ(later.state, Stability::State::kStable);
  EXPECT_GT(later.windows, 5);
  EXPECT_EQ(run([](Duration at) { return Duration(100ms) + at / 20; }, even).state, Stability::State::kUnstable);
  EXPECT_EQ(find_stability(result_of({record(0ms, 1ms, 1ms, 2), record(9s, 1ms, 1ms, 2)}), {}).state, Stability::State::kTooShort);
}

TEST(Search, FindsTheHighestThatHolds) {
  std::vector<double> asked;
  const auto below = [&](double limit) {
    return [&asked, limit](double level) -> Result<bool> {
      asked.push_back(level);
      return level <= limit;
    };
  };
  const auto found = find_highest(1, 64, 1, below(23.7));
  EXPECT_DOUBLE_EQ(*found->highest, 23);
  EXPECT_LE(asked.size(), 9u);
  EXPECT_FALSE(find_highest(1, 64, 1, below(0.5))->highest);
  EXPECT_TRUE(find_highest(1, 64, 1, below(1000))->reached_end);
  EXPECT_NEAR(*find_highest(1, 2, 0.01, below(1.505))->highest, 1.50, 0.011);
  EXPECT_FALSE(find_highest(1, 2, 1, [](double) -> Result<bool> { return fail(ErrorCode::kNetwork, "gone"); }));
  EXPECT_EQ(*parse_levels("1:5:2"), (std::vector<double>{1, 3, 5}));
  EXPECT_EQ(*parse_levels("1:8:x2"), (std::vector<double>{1, 2, 4, 8}));
  EXPECT_EQ(*parse_levels("4,2"), (std::vector<double>{4, 2}));
  for (const char* bad : {"", "0", "5:1", "1:2:0", "1:1e9:1", "1:8:x1", "a"}) EXPECT_FALSE(parse_levels(bad)) << bad;
}

TEST(Compare, PairedRatiosCancelAMachineThatDrifts) {
  const ComparedMetric latency = *parse_metric("e2e_p50"), rate = *parse_metric("output_tokens_per_s");
  // Each round is up to twice as slow as another, B always 10 % slower than A within a round.
  const std::vector<double> a{1.0, 2.0, 1.3, 1.7, 0.9, 1.1}, b{1.101, 2.198, 1.431, 1.868, 0.991, 1.209};
  const PairedRatio slower = paired_ratio(latency, a, b, 0.05, 0.95);
  EXPECT_NEAR(slower.ratio, 1.1, 0.002);
  EXPECT_LT(slower.interval.high - slower.interval.low, 0.01);
  EXPECT_EQ(slower.verdict, PairedRatio::Verdict::kRegression);
  EXPECT_EQ(paired_ratio(latency, a, b, 0.15, 0.95).verdict, PairedRatio::Verdict::kWorse);
  EXPECT_EQ(paired_ratio(rate, a, b, 0.05, 0.95).verdict, PairedRatio::Verdict::kBetter);
  EXPECT_EQ(paired_ratio(rate, b, a, 0.05, 0.95).verdict, PairedRatio::Verdict::kRegression);
  const std::vector<double> noisy{1.5, 1.6, 1.6, 1.4, 1.2, 0.8};
  EXPECT_EQ(paired_ratio(latency, a, noisy, 0.05, 0.95).verdict, PairedRatio::Verdict::kSame);
  EXPECT_EQ(paired_ratio(latency, std::vector<double>{1}, std::vector<double>{2}, 0.05, 0.95).verdict, PairedRatio::Verdict::kSame);
  EXPECT_EQ(paired_ratio(latency, std::vector<double>{0}, std::vector<double>{2}, 0.05, 0.95).verdict, PairedRatio::Verdict::kUnknown);
  EXPECT_NEAR(student_quantile(0.975, 5), 2.570582, 1e-5);
  EXPECT_NEAR(student_quantile(0.025, 30), -2.042272, 1e-5);
  for (const char* bad : {"", "ttft", "ttft_p51", "speed", "goodput_p50"}) EXPECT_FALSE(parse_metric(bad)) << bad;
  const auto order = a_first_order(10, 3);
  EXPECT_EQ(std::count(order.begin(), order.end(), true), 5);
}

TEST(Reports, JsonAndCsvHoldWhatTheyPromise) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 700; ++i) records.push_back(record(10ms * i, 100ms, 10ms, 5));
  const RunResult result = result_of(std::move(records));
  const Summary s = summarize(result, {});
  RunLabel label{
      .target = "http://a,b/", .load = "poisson:100", .prompts = "x", .model = "=cmd()", .seed = 7, .rate = 100, .concurrency = 0};
  const json::Object out = to_json(s, label, {});
  EXPECT_EQ(out.at("schema").as_string(), "weir.bench.load/1");
  EXPECT_NEAR(out.at("latency").at("ttft_s").at("percentiles").at("p99").as_double(), 0.1, 1e-9);
  EXPECT_NEAR(out.at("bounds_with_99_percent_confidence").at("ttft_p99").at("value_s").as_double(), 0.1, 1e-9);  // 662 are enough
  EXPECT_TRUE(out.at("valid").as_bool());
  const std::vector<std::pair<RunLabel, Summary>> rows{{label, s}};
  EXPECT_NE(to_csv(rows).find("\n\"http://a,b/\",poisson:100,100,0,7,true,700,700,"), std::string::npos) << to_csv(rows);
  const std::string perf = perf_analyzer_csv(rows, false);
  EXPECT_TRUE(perf.starts_with("Request Rate,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,")) << perf;
  EXPECT_NE(perf.find(",140000,140000,140000,140000\n"), std::string::npos) << perf;
  const std::string lines = records_csv(result);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 701);
}

}  // namespace
}  // namespace weir::loadgen
