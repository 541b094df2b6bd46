// SPDX-License-Identifier: Apache-2.0
// Profiles and what they judge by, on runs made by hand.
#include "loadgen/profile.h"

#include <gtest/gtest.h>

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

RequestRecord answer(Duration scheduled, Duration e2e, std::uint64_t hash, std::uint32_t conversation) {
  RequestRecord r;
  r.scheduled = r.eligible = r.started = r.sent = scheduled;
  r.done = scheduled + e2e;
  r.outcome = Outcome::kOk;
  r.answer_hash = hash;
  r.conversation = conversation;
  return r;
}

const Judged& criterion(const Verdict& verdict, std::string_view name) {
  for (const Judged& judged : verdict.criteria)
    if (judged.name == name) return judged;
  ADD_FAILURE() << name;
  return verdict.criteria.front();
}

TEST(Profile, NamesAndDefaultsAreOptionsOfTheVerb) {
  for (const char* name : {"hyperscale", "on-prem", "edge", "embedded"}) {
    const auto profile = profile_named(name);
    ASSERT_TRUE(profile);
    EXPECT_EQ(profile_name(*profile), name);
    for (const ProfileDefault& value : profile_defaults(*profile)) {
      EXPECT_TRUE(value.option.starts_with("--"));
      EXPECT_FALSE(value.value.empty());
    }
  }
  EXPECT_FALSE(profile_named("cloud"));
  EXPECT_EQ(profile_defaults(Profile::kEdge)[0].option, "--concurrency");
  EXPECT_EQ(profile_defaults(Profile::kEdge)[0].value, "1");
}

TEST(Profile, HyperscaleWantsConsistencyAndGoodRequests) {
  Summary s;
  s.requests = 1000;
  s.ok = 999;
  s.good = 995;
  s.goodput = 30;
  std::vector<double> ttft(1000, 0.1);
  std::fill(ttft.begin(), ttft.begin() + 20, 0.7);
  s.ttft = Stat::of(ttft);
  s.tpot = Stat::of(std::vector<double>(1000, 0.02));
  ProfileFacts facts;
  facts.mean_watts = 600;
  const Verdict verdict = judge(Profile::kHyperscale, {}, s, facts);
  EXPECT_EQ(verdict.outcome, Verdict::Outcome::kFail);
  EXPECT_EQ(criterion(verdict, "good_share").state, Judged::State::kPass);
  EXPECT_DOUBLE_EQ(*criterion(verdict, "error_share").figure, 0.001);
  EXPECT_EQ(criterion(verdict, "error_share").state, Judged::State::kPass);
  EXPECT_DOUBLE_EQ(*criterion(verdict, "ttft_p99_over_p50").figure, 7);
  EXPECT_EQ(criterion(verdict, "ttft_p99_over_p50").state, Judged::State::kFail);
  EXPECT_DOUBLE_EQ(*criterion(verdict, "tpot_p99_over_p50").figure, 1);
  EXPECT_DOUBLE_EQ(*criterion(verdict, "goodput_per_watt").figure, 0.05);
  EXPECT_EQ(criterion(verdict, "goodput_per_watt").state, Judged::State::kReported);
  EXPECT_FALSE(criterion(verdict, "good_requests_per_price").figure);
  // A bound of the user's own goes before the profile's.
  const auto required = parse_requirements("ttft_p99_over_p50=8,goodput_per_watt=0.04");
  ASSERT_TRUE(required);
  EXPECT_EQ(judge(Profile::kHyperscale, *required, s, facts).outcome, Verdict::Outcome::kPass);
}

TEST(Profile, EdgeIsIncompleteWithoutWatts) {
  Summary s;
  s.requests = s.ok = 100;
  s.ttft = Stat::of(std::vector<double>(100, 0.5));
  s.tpot = Stat::of(std::vector<double>(100, 0.1));
  s.e2e = Stat::of(std::vector<double>(100, 5));
  ProfileFacts facts;
  EXPECT_EQ(judge(Profile::kEdge, {}, s, facts).outcome, Verdict::Outcome::kIncomplete);
  facts.mean_watts = 14;
  EXPECT_EQ(judge(Profile::kEdge, {}, s, facts).outcome, Verdict::Outcome::kPass);
  facts.mean_watts = 16;
  EXPECT_EQ(judge(Profile::kEdge, {}, s, facts).outcome, Verdict::Outcome::kFail);
}

TEST(Profile, OnPremHasABudgetOfTime) {
  Summary s;
  s.requests = s.ok = s.good = 700;
  s.stability.state = Stability::State::kStable;
  ProfileFacts facts;
  facts.wall_s = 299;
  EXPECT_EQ(judge(Profile::kOnPrem, {}, s, facts).outcome, Verdict::Outcome::kPass);
  facts.wall_s = 301;
  EXPECT_EQ(judge(Profile::kOnPrem, {}, s, facts).outcome, Verdict::Outcome::kFail);
  facts.wall_s = 299;
  s.stability.state = Stability::State::kUnstable;
  EXPECT_EQ(criterion(judge(Profile::kOnPrem, {}, s, facts), "stable").state, Judged::State::kFail);
}

TEST(Profile, EmbeddedWantsTheSameAnswerEachTime) {
  RunResult result;
  result.prompts = 2;
  for (std::uint32_t i = 0; i < 80; ++i) result.records.push_back(answer(100ms * i, i < 60 ? 50ms : 55ms, i % 2 ? 7 : 8, i));
  result.length = 8s;
  ProfileFacts facts = facts_of(result, {});
  EXPECT_DOUBLE_EQ(*facts.answers_per_prompt, 1);  // two prompts, each with an answer of its own
  EXPECT_NEAR(*facts.drift, 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(facts.wall_s, 8);
  result.records[40].answer_hash = 9;
  result.records[42].answer_hash = 10;
  facts = facts_of(result, {});
  EXPECT_DOUBLE_EQ(*facts.answers_per_prompt, 3);
  const Verdict verdict = judge(Profile::kEmbedded, {}, summarize(result, {}), facts);
  EXPECT_EQ(criterion(verdict, "answers_per_prompt").state, Judged::State::kFail);
  EXPECT_EQ(criterion(verdict, "drift").state, Judged::State::kFail);
  EXPECT_DOUBLE_EQ(*criterion(verdict, "worst_over_p50").figure, 1.1);
  for (RequestRecord& r : result.records) r.answer_hash = 0;
  EXPECT_FALSE(facts_of(result, {}).answers_per_prompt);
  result.records.resize(20);
  EXPECT_FALSE(facts_of(result, {}).drift);
}

TEST(Profile, EnergyComesFromTheRunsJson) {
  const json::Object seen{{"energy", json::Object{{"mean_watts", 12.5},
                                                  {"joules_per_request", 3},
                                                  {"facility", json::Object{{"per_request", json::Object{{"money", 0.01}}}}}}}};
  const ProfileFacts facts = facts_of({}, seen);
  EXPECT_DOUBLE_EQ(*facts.mean_watts, 12.5);
  EXPECT_DOUBLE_EQ(*facts.joules_per_request, 3);
  EXPECT_DOUBLE_EQ(*facts.price_per_request, 0.01);
  EXPECT_FALSE(facts_of({}, {{"energy", "none"}}).mean_watts);
}

TEST(Profile, RequirementsNameCriteria) {
  const auto required = parse_requirements("error_share=0");
  ASSERT_TRUE(required);
  Summary s;
  s.requests = 10;
  s.ok = 9;
  const Verdict verdict = judge({}, *required, s, {});
  EXPECT_EQ(verdict.outcome, Verdict::Outcome::kFail);
  EXPECT_NE(to_text(verdict).find("Verdict: fail\n  error_share                        0.1 ≤ 0"), std::string::npos) << to_text(verdict);
  EXPECT_EQ(to_json(verdict).at("profile"), json::Value(nullptr));
  EXPECT_EQ(to_json(verdict).at("criteria").at(0).at("state"), "fail");
  EXPECT_FALSE(judge({}, {}, s, {}).any());
  for (const char* bad : {"", "error_share", "error_share=", "speed=1", "error_share=1,"}) EXPECT_FALSE(parse_requirements(bad)) << bad;
}

}  // namespace
}  // namespace weir::loadgen
