// SPDX-License-Identifier: Apache-2.0
// Run records: what is kept, what is left out, and what a hostile one cannot do.
#include "loadgen/report_record.h"

#include <gtest/gtest.h>

namespace weir::loadgen {
namespace {

using Words = std::vector<std::string>;

RunRecord sample() {
  return {.verb = "load",
          .command = {"bench", "load", "http://localhost:1", "--rate", "5"},
          .weir = "0.1",
          .date = "2026-12-02T00:00:00Z",
          .machine = {{"cpu", "x"}},
          .environment = {},
          .seed = 18446744073709551615u,
          .valid = true,
          .figures = {{"request_rate", "1/s", 5, true}, {"ttft_p99", "s", 0.2, false}},
          .results = json::Object{{"a", 1}}};
}

TEST(RunRecord, ReadsBackAsWritten) {
  const auto text = boost::json::serialize(to_json(sample()));
  const auto read = parse_record(*json::parse(text, "record"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(boost::json::serialize(to_json(*read)), text);
  EXPECT_EQ(read->seed, 18446744073709551615u);
}

TEST(RunRecord, OnlyBenchVerbsOfAKnownSchemaAreRead) {
  const auto with = [](std::string_view key, json::Value value) {
    json::Object object = to_json(sample());
    object[key] = std::move(value);
    return parse_record(object);
  };
  ASSERT_TRUE(with("weir", "1"));
  EXPECT_FALSE(with("schema", "weir.bench.record/2"));
  EXPECT_FALSE(with("schema", nullptr));
  EXPECT_FALSE(with("verb", "null-server"));
  EXPECT_FALSE(with("verb", "rm"));
  EXPECT_FALSE(with("verb", "engine"));  // while the command says load
  EXPECT_FALSE(with("command", "bench load x; rm -rf /"));
  EXPECT_FALSE(with("command", json::Array{"rm", "-rf", "/"}));
  EXPECT_FALSE(with("command", json::Array{"bench"}));
  EXPECT_FALSE(with("command", json::Array{"-v", "bench", "load"}));
  EXPECT_FALSE(with("command", json::Array{"bench", "load", 5}));
  EXPECT_FALSE(with("command", json::Array{"bench", "load", std::string("a\0b", 3)}));
  EXPECT_FALSE(with("command", json::Array{"bench", "load", std::string(1 << 20, 'a')}));
  EXPECT_FALSE(with("seed", -1));
  EXPECT_FALSE(with("figures", json::Array{json::Object{{"name", "x"}}}));
  EXPECT_FALSE(parse_record(json::Array{}));
}

TEST(RunRecord, KeysAndCredentialsAreLeftOut) {
  EXPECT_EQ(without_secrets({"bench", "load", "u", "--api-key", "sk-1", "--rate", "5"}), (Words{"bench", "load", "u", "--rate", "5"}));
  EXPECT_EQ(without_secrets({"bench", "load", "--api-key=sk-1", "u"}), (Words{"bench", "load", "u"}));
  EXPECT_EQ(
      without_secrets({"-H", "Authorization: Bearer x", "-H", "X-Team: a", "--header=X-Api-Key: k", "-HCookie: c", "-H=Proxy-Auth: z"}),
      (Words{"-H", "X-Team: a"}));
  EXPECT_EQ(without_secrets({"--header", "x-token: t", "--api-key"}), Words{});
}

TEST(RunRecord, AFigureIsWorseBeyondTheThresholdInItsOwnDirection) {
  RunRecord before = sample(), after = sample();
  after.figures = {{"request_rate", "1/s", 4.8, true}, {"ttft_p99", "s", 0.209, false}};
  EXPECT_FALSE(compare_records(before, after, 0.05).regression);
  after.figures[1].value = 0.211;
  RecordChange change = compare_records(before, after, 0.05);
  EXPECT_TRUE(change.regression);
  EXPECT_FALSE(change.figures[0].worse);
  EXPECT_TRUE(change.figures[1].worse);
  EXPECT_NEAR(change.figures[1].ratio, 1.055, 1e-12);
  EXPECT_NE(to_text(change).find("ttft_p99, ms                           200.000       211.000     1.055  WORSE\n"), std::string::npos)
      << to_text(change);
  after.figures[1].value = 0.1;  // better
  after.figures[0].value = 4.7;
  change = compare_records(before, after, 0.05);
  EXPECT_TRUE(change.figures[0].worse);
  EXPECT_FALSE(change.figures[1].worse);
  after.figures[0].value = 0;
  EXPECT_TRUE(compare_records(before, after, 0.05).regression);
}

TEST(RunRecord, WhatIsMissingOrNoLongerValidIsARegression) {
  const RunRecord before = sample();
  RunRecord after = sample();
  EXPECT_FALSE(compare_records(before, after, 0).regression);
  after.figures.pop_back();
  EXPECT_EQ(compare_records(before, after, 0).missing, Words{"ttft_p99"});
  EXPECT_TRUE(compare_records(before, after, 0).regression);
  after = sample();
  after.valid = false;
  EXPECT_TRUE(compare_records(before, after, 0).regression);
  EXPECT_FALSE(compare_records(after, before, 0).regression);
}

TEST(RunRecord, FiguresOfALoad) {
  Summary s;
  s.request_rate = 5;
  s.output_tokens_per_s = 50;
  s.ok = 10;
  s.good = 8;
  s.goodput = 4;
  s.e2e = Stat::of({1, 2, 3});
  const std::vector<Figure> figures = figures_of(s, "5/s ");
  ASSERT_EQ(figures.size(), 5u);
  EXPECT_EQ(figures[0].name, "5/s request_rate");
  EXPECT_TRUE(figures[0].higher_is_better);
  EXPECT_EQ(figures[2].name, "5/s goodput");
  EXPECT_EQ(figures[3].name, "5/s e2e_p50");
  EXPECT_DOUBLE_EQ(figures[3].value, 2);
  EXPECT_FALSE(figures[3].higher_is_better);
}

}  // namespace
}  // namespace weir::loadgen
