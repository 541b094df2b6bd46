// SPDX-License-Identifier: Apache-2.0
// Data sets, logs and user.conf: what is read and written, without LoadGen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "mlperf/benchmarks.h"
#include "mlperf/dataset.h"
#include "mlperf/logs.h"
#include "mlperf/user_conf.h"

namespace weir::mlperf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DatasetFile, HoldsPromptsMessagesOrTokens) {
  const auto set = parse_dataset(
      "{\"prompt\": \"hi\", \"answer\": \"ho\"}\n\n{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\r\n{\"tokens\": [1, 2]}",
      "d");
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_EQ(set->samples.size(), 3u);
  EXPECT_EQ(set->samples[0].prompt, "hi");
  EXPECT_EQ(set->samples[0].answer, "ho");
  EXPECT_EQ(set->samples[1].messages.size(), 1u);
  EXPECT_THAT(set->samples[2].tokens, ElementsAre(1, 2));
  EXPECT_FALSE(set->has_answers());
}

TEST(DatasetFile, ErrorsNameTheLine) {
  for (const char* bad :
       {"{}", "[1]", "{\"prompt\": \"\"}", "{\"prompt\": 3}", "{\"prompt\": \"a\", \"tokens\": [1]}", "{\"tokens\": [-1]}",
        "{\"tokens\": [2147483648]}", "{\"tokens\": []}", "{\"messages\": []}", "{\"prompt\": \"a\", \"answer\": 1}", "{"}) {
    const auto set = parse_dataset(std::string("{\"prompt\": \"fine\"}\n") + bad, "set.jsonl");
    ASSERT_FALSE(set) << bad;
    EXPECT_THAT(set.error().message, HasSubstr("set.jsonl, line 2")) << bad;
  }
  EXPECT_FALSE(parse_dataset("\n\n", "empty"));
}

TEST(DatasetFile, TheProjectsOwnIsReadWithItsDigest) {
  const auto set = read_dataset(testing::data_path("mlperf/questions.jsonl"));
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->samples.size(), 12u);
  EXPECT_TRUE(set->has_answers());
  EXPECT_EQ(set->sha256, "205f368e740754e222d614305e8d908f50ebac22eeb5a8f5b655fee375368f1e");
}

TEST(DetailLog, ReadsVerdictFiguresAndErrors) {
  const auto log = parse_detail(
      ":::MLLOG {\"key\": \"result_validity\", \"value\": \"INVALID\", \"metadata\": {\"is_error\": false}}\n"
      "something else\n"
      ":::MLLOG {\"key\": \"early_stopping_met\", \"value\": true, \"metadata\": {}}\n"
      ":::MLLOG {\"key\": \"result_99.00_percentile_latency_ns\", \"value\": 1234}\n"
      ":::MLLOG {broken\n"
      ":::MLLOG {\"key\": \"error_runtime\", \"value\": \"ran out\", \"metadata\": {\"is_error\": true, \"is_warning\": false}}\n");
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_FALSE(log->valid());
  EXPECT_TRUE(log->flag("early_stopping_met"));
  EXPECT_EQ(log->number("result_99.00_percentile_latency_ns"), 1234);
  EXPECT_EQ(log->number("absent", -1), -1);
  EXPECT_THAT(log->errors, ElementsAre("error_runtime: ran out"));
  EXPECT_FALSE(parse_detail("no log\n"));
}

TEST(AccuracyLog, HexBecomesBytes) {
  const auto log = parse_accuracy(
      "[\n{ \"seq_id\" : 4, \"qsl_idx\" : 2, \"data\" : \"00FF6a\", \"token_data\" : \"\", \"token_count\" : 3 },\n"
      "{ \"seq_id\" : 5, \"qsl_idx\" : 0, \"data\" : \"\" }\n]\n");
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_EQ(log->size(), 2u);
  EXPECT_EQ((*log)[0].sample, 2u);
  EXPECT_EQ((*log)[0].data, std::string("\0\xFFj", 3));
  EXPECT_EQ((*log)[0].tokens, 3);
  EXPECT_EQ((*log)[1].tokens, -1);
}

TEST(AccuracyLog, WhatIsNotOneIsRefused) {
  for (const char* bad : {"{}", "[{\"seq_id\": 0, \"qsl_idx\": 0, \"data\": \"0\"}]", "[{\"seq_id\": 0, \"qsl_idx\": 0, \"data\": \"0g\"}]",
                          "[{\"seq_id\": -1, \"qsl_idx\": 0, \"data\": \"\"}]", "[{\"qsl_idx\": 0, \"data\": \"\"}]", "[3]", ""})
    EXPECT_FALSE(parse_accuracy(bad)) << bad;
}

TEST(UserConf, OptionsComeLastUnderTheExactKey) {
  ConfOptions o;
  o.scenario = Scenario::kServer;
  o.interactive = true;
  o.benchmark = "llama2-70b";
  o.target_qps = 2.5;
  o.min_duration_ms = 1000;
  const auto text = make_user_conf(o, "*.Server.target_qps = 9");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text,
            "# From --conf:\n*.Server.target_qps = 9\n# From options:\nllama2-70b-interactive.Server.target_qps = 2.5\n"
            "llama2-70b-interactive.Server.min_duration = 1000\n");
}

TEST(UserConf, OptionsThatTheScenarioHasNoUseForAreRefused) {
  ConfOptions o;
  o.scenario = Scenario::kSingleStream;
  o.target_qps = 1;
  EXPECT_FALSE(make_user_conf(o, ""));
  o = {.scenario = Scenario::kOffline};
  o.ttft_ms = 5;
  EXPECT_FALSE(make_user_conf(o, ""));
  o = {.scenario = Scenario::kServer};
  o.target_qps = -1;
  EXPECT_FALSE(make_user_conf(o, ""));
  o.target_qps = 1;
  o.percentile = 100;
  EXPECT_FALSE(make_user_conf(o, ""));
}

TEST(UserConf, SeesKeysByNameAndByWildcard) {
  EXPECT_TRUE(conf_sets("# x\n*.SingleStream.target_latency = 3\n", "m", Scenario::kSingleStream, "target_latency"));
  EXPECT_TRUE(conf_sets("m.*.target_latency = 3", "m", Scenario::kSingleStream, "target_latency"));
  EXPECT_FALSE(conf_sets("other.SingleStream.target_latency = 3", "m", Scenario::kSingleStream, "target_latency"));
  EXPECT_FALSE(conf_sets("# m.SingleStream.target_latency = 3", "m", Scenario::kSingleStream, "target_latency"));
}

TEST(Benchmarks, AreFoundByKeyAndShownInFull) {
  ASSERT_TRUE(find_benchmark("llama3_1-8b"));
  EXPECT_EQ(find_benchmark("llama3_1-8b")->max_tokens, 128);
  EXPECT_EQ(find_benchmark("llama"), nullptr);
  for (const Benchmark& b : benchmarks()) EXPECT_THAT(benchmark_table(), HasSubstr(std::string(b.key)));
  EXPECT_EQ(benchmarks_json().size(), benchmarks().size());
}

}  // namespace
}  // namespace weir::mlperf
