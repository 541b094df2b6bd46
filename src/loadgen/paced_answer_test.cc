// SPDX-License-Identifier: Apache-2.0
#include "loadgen/paced_answer.h"

#include <gtest/gtest.h>

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart = TimePoint{} + 1h;

TEST(PacedAnswer, EventsAreDueAtAbsoluteMoments) {
  NullServerOptions options;
  options.ttft = Distribution::constant(0.1);
  options.itl = Distribution::constant(0.01);
  PacedAnswer answer(options, {.stream = true, .max_tokens = 3}, 1);
  answer.begin(kStart, kStart, kStart);
  EXPECT_EQ(answer.due(), kStart + 100ms);
  EXPECT_NE(answer.take_event().find("\"role\":\"assistant\""), std::string::npos);
  EXPECT_EQ(answer.due(), kStart + 110ms);
  answer.take_event();
  EXPECT_EQ(answer.due(), kStart + 120ms);
  EXPECT_FALSE(answer.over());
  EXPECT_NE(answer.take_event().find("\"finish_reason\":\"length\""), std::string::npos);
  EXPECT_TRUE(answer.over());
}

TEST(PacedAnswer, TokensThatComeTogetherComeWithTheirLast) {
  NullServerOptions options;
  options.ttft = Distribution::constant(0.1);
  options.itl = Distribution::constant(0.01);
  options.tokens = Distribution::constant(5);
  options.tokens_per_event = 2;
  PacedAnswer answer(options, {.stream = true}, 1);
  answer.begin(kStart, kStart, kStart);
  std::vector<Duration> moments;
  while (!answer.over()) {
    moments.push_back(answer.due() - kStart);
    answer.take_event();
  }
  EXPECT_EQ(moments, (std::vector<Duration>{110ms, 130ms, 140ms}));
}

TEST(PacedAnswer, StallsStopTime) {
  const std::vector<NullServerOptions::Stall> stalls{{100ms, 50ms}, {200ms, 100ms}};
  EXPECT_EQ(advance(kStart, 99ms, kStart, stalls), kStart + 99ms);
  EXPECT_EQ(advance(kStart, 110ms, kStart, stalls), kStart + 160ms);
  EXPECT_EQ(advance(kStart + 120ms, 10ms, kStart, stalls), kStart + 160ms);  // it began within a stall
  EXPECT_EQ(advance(kStart, 180ms, kStart, stalls), kStart + 330ms);         // both
  EXPECT_EQ(advance(kStart + 400ms, 10ms, kStart, stalls), kStart + 410ms);
}

TEST(PacedAnswer, ReadsRequests) {
  const auto chat = parse_null_request(
      R"({"messages":[{"role":"user","content":"one two"},{"role":"user","content":[{"type":"text","text":"three"}]}],"stream":true,
          "stream_options":{"include_usage":true},"max_completion_tokens":7})",
      true);
  ASSERT_TRUE(chat) << chat.error().message;
  EXPECT_EQ(chat->prompt_tokens, 3);
  EXPECT_EQ(chat->max_tokens, 7);
  EXPECT_TRUE(chat->stream && chat->include_usage);
  EXPECT_EQ(parse_null_request(R"({"prompt":[5,6,7,8]})", false)->prompt_tokens, 4);
  for (const char* bad :
       {"", "[]", "{}", R"({"messages":[],"stream":3})", R"({"messages":[],"max_tokens":-1})", R"({"messages":[],"max_tokens":99999999})"})
    EXPECT_FALSE(parse_null_request(bad, true)) << bad;
}

TEST(PacedAnswer, SameSeedSamePace) {
  NullServerOptions options;
  options.ttft = *Distribution::parse("exp:50ms", Distribution::Unit::kSeconds);
  options.itl = *Distribution::parse("normal:10ms,2ms", Distribution::Unit::kSeconds);
  const auto moments = [&](std::uint64_t number) {
    PacedAnswer answer(options, {.stream = true, .max_tokens = 20}, number);
    answer.begin(kStart, kStart, kStart);
    std::vector<Duration> out;
    for (; !answer.over(); answer.take_event()) out.push_back(answer.due() - kStart);
    return out;
  };
  EXPECT_EQ(moments(3), moments(3));
  EXPECT_NE(moments(3), moments(4));
}

TEST(PacedAnswer, ErrorsAreJsonWhateverTheMessage) {
  const std::string answer = PacedAnswer::error_answer(400, "a \"quote\"\n");
  EXPECT_NE(answer.find(R"("message":"a \"quote\"\n")"), std::string::npos) << answer;
}

}  // namespace
}  // namespace weir::loadgen
