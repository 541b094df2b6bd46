// SPDX-License-Identifier: Apache-2.0
// Samples as files: what is written is what is read again, in all four forms; what nobody would write is refused.
#include "loadgen/report_samples.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file_io.h"
#include "loadgen/metrics.h"
#include "loadgen/report_curves.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

RequestRecord sample() {
  RequestRecord r;
  r.scheduled = r.eligible = r.started = 1500ms;
  r.sent = 1500ms + 12us;
  r.first_token = 1750ms;
  r.gaps = {10ms, 20ms + 1ns};
  r.last_token = 1780ms + 1ns;
  r.done = 1781ms;
  r.prompt_tokens = 7;
  r.output_tokens = r.events = 3;
  r.outcome = Outcome::kOk;
  r.status = 200;
  r.turn = 1;
  r.conversation = 42;
  r.queue_s = 0.25;
  r.answer_hash = 0xabc;
  return r;
}

RunResult two() {
  RunResult result;
  result.records = {sample(), {}};
  result.records[1].scheduled = 2s;
  result.records[1].outcome = Outcome::kConnect;
  return result;
}

TEST(Samples, ACsvRowHoldsEveryMomentAndGap) {
  EXPECT_EQ(record_csv(sample(), 2),
            "2,42,1,ok,200,1.500000000,1.500000000,1.500000000,,1.500012000,1.750000000,1.780000001,1.781000000,7,3,,3,0.250000000,,,"
            "0000000000000abc,0.010000000;0.020000001\n");
  EXPECT_EQ(std::count(samples_csv_header().begin(), samples_csv_header().end(), ','), 21);
  const json::Object row = record_json(sample(), 2);
  EXPECT_EQ(row.size(), 22u);
  EXPECT_EQ(row.at("connected_s"), json::Value(nullptr));
  EXPECT_EQ(row.at("answer_hash"), "0000000000000abc");
  EXPECT_DOUBLE_EQ(row.at("gaps_s").as_array().at(1).as_double(), 0.020000001);
}

TEST(Samples, EveryFormReadsBackTheSame) {
  const RunResult first = two(), second = two();
  const RunResult* levels[] = {&first, &second};
  for (const char* name : {"s.jsonl", "s.csv", "s.jsonl.gz", "s.csv.gz"}) {
    const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
    ASSERT_TRUE(write_samples(path, levels));
    const auto bytes = read_file(path);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->starts_with("\x1f\x8b"), path.extension() == ".gz") << name;
    const auto read = read_samples(path);
    ASSERT_TRUE(read) << name << ": " << read.error().message;
    ASSERT_EQ(read->size(), 2u);
    const RunResult& result = (*read)[1];
    ASSERT_EQ(result.records.size(), 2u);
    EXPECT_EQ(record_csv(result.records[0], 0), record_csv(sample(), 0)) << name;
    EXPECT_EQ(result.records[1].outcome, Outcome::kConnect);
    EXPECT_EQ(result.records[1].sent, kNever);
    EXPECT_EQ(result.length, 1781ms);
    std::filesystem::remove(path);
  }
  for (const char* name : {"s.txt", "s", "s.gz", "s.csv.zst"}) EXPECT_FALSE(SampleKind::of(name)) << name;
}

TEST(Samples, ManyRowsComeThroughCompressionWhole) {
  RunResult many;
  for (int i = 0; i < 5000; ++i) {
    many.records.push_back(sample());
    many.records.back().scheduled = 1ms * i;
  }
  const RunResult* levels[] = {&many};
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "many.csv.gz";
  ASSERT_TRUE(write_samples(path, levels));
  const auto read = read_samples(path);
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)[0].records.size(), 5000u);
  EXPECT_EQ((*read)[0].records.back().scheduled, 4999ms);
  const auto whole = read_file(path);
  ASSERT_TRUE(write_file_atomically(path, std::string_view(*whole).substr(0, whole->size() / 2)));
  EXPECT_FALSE(read_samples(path));
  std::filesystem::remove(path);
}

TEST(Samples, WhatNobodyWouldWriteIsRefusedWithItsLine) {
  const std::string header(samples_csv_header());
  const auto row = [&](const std::string& outcome, const std::string& scheduled, const std::string& gaps) {
    return parse_samples(header + "0,0,0," + outcome + ",200," + scheduled + ",0,0,,0,0.1,0.2,0.3,,,,1,,,,," + gaps + "\n",
                         SampleFormat::kCsv);
  };
  ASSERT_TRUE(row("ok", "0", "0.1;0.2"));
  EXPECT_EQ(row("ok", "0", "1e300").error().message.substr(0, 6), "line 2");
  for (const char* gaps : {"-1", "x", "nan", "1e8;1"}) EXPECT_FALSE(row("ok", "0", gaps)) << gaps;
  for (const char* scheduled : {"1e300", "inf", "a"}) EXPECT_FALSE(row("ok", scheduled, "")) << scheduled;
  EXPECT_FALSE(row("fine", "0", ""));
  EXPECT_FALSE(parse_samples(header + "0,0\n", SampleFormat::kCsv));
  EXPECT_FALSE(parse_samples("{\"outcome\":\"ok\"}\n", SampleFormat::kJsonl));  // answered, without moments
  EXPECT_FALSE(parse_samples("{\"outcome\":\"connect\",\"level\":1e9}\n", SampleFormat::kJsonl));
  EXPECT_TRUE(parse_samples("{\"outcome\":\"connect\",\"scheduled_s\":1}\n\n", SampleFormat::kJsonl));
  EXPECT_TRUE(parse_samples("", SampleFormat::kCsv)->empty());
}

TEST(Curves, QuantilesAreThoseOfTheSamples) {
  RunResult result;
  for (int i = 0; i <= 1000; ++i) {
    RequestRecord r = sample();
    r.scheduled = 0ms;
    r.done = 1ms * i;
    r.first_token = r.last_token = kNever;
    r.gaps.clear();
    result.records.push_back(r);
  }
  const json::Object curves = curves_json(result);
  const auto& quantiles = curves.at("quantiles").as_array();
  const auto& e2e = curves.at("e2e_s").as_array();
  ASSERT_EQ(quantiles.size(), 112u);
  ASSERT_EQ(e2e.size(), 112u);
  for (std::size_t i = 0; i < quantiles.size(); ++i)
    EXPECT_NEAR(e2e[i].to_number<double>(), quantiles[i].to_number<double>() / 100, 1e-6) << i;
  EXPECT_FALSE(curves.contains("ttft_s"));
  EXPECT_FALSE(curves.contains("itl_s"));
}

TEST(Timeline, CountsAndTimeInFlightByWindow) {
  // Two requests: one in flight from 0 to 10 s, one from 2.5 to 3.5 s.
  RunResult result;
  RequestRecord long_one, short_one;
  long_one.scheduled = long_one.sent = 0s;
  long_one.done = 10s;
  short_one.scheduled = short_one.sent = 2500ms;
  short_one.first_token = short_one.last_token = 3s;
  short_one.done = 3500ms;
  short_one.events = short_one.output_tokens = 1;
  long_one.outcome = Outcome::kTimeout;
  short_one.outcome = Outcome::kOk;
  result.records = {long_one, short_one};
  result.length = 10s;
  const json::Object timeline = timeline_json(result);
  ASSERT_EQ(timeline.at("window_s").to_number<double>(), 0.5);  // twenty windows for so few requests
  const auto at = [&](const char* key, std::size_t i) { return timeline.at(key).as_array().at(i).to_number<double>(); };
  ASSERT_EQ(timeline.at("in_flight").as_array().size(), 20u);
  const double in_flight[] = {1, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < 20; ++i) EXPECT_DOUBLE_EQ(at("in_flight", i), in_flight[i]) << i;
  EXPECT_DOUBLE_EQ(at("scheduled_per_s", 0), 2);
  EXPECT_DOUBLE_EQ(at("scheduled_per_s", 5), 2);
  EXPECT_DOUBLE_EQ(at("completed_per_s", 7), 2);
  EXPECT_DOUBLE_EQ(at("failed_per_s", 19), 2);
  EXPECT_DOUBLE_EQ(at("output_tokens_per_s", 6), 2);
  EXPECT_TRUE(timeline.at("ttft_p50_s").as_array().at(0).is_null());
  EXPECT_DOUBLE_EQ(at("ttft_p50_s", 5), 0.5);
  EXPECT_DOUBLE_EQ(at("e2e_p99_s", 5), 1);
  EXPECT_DOUBLE_EQ(window_length(10, 200), 0.05);
  EXPECT_DOUBLE_EQ(window_length(11, 200), 0.1);
  EXPECT_DOUBLE_EQ(window_length(0, 200), 0.001);
}

}  // namespace
}  // namespace weir::loadgen
