// SPDX-License-Identifier: Apache-2.0
// One request's events between two threads: nothing is lost, doubled or put behind the last, however slow the reader is and whether
// or not the engine is still there.
#include "engine/completion_channel.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace weir::engine {
namespace {

constexpr Duration kPatience = std::chrono::seconds(30);

CompletionEvent piece(std::int32_t answer, TokenId token) {
  return {.answer = answer, .tokens = {token}, .text = std::string(1, static_cast<char>('a' + token % 26))};
}

CompletionEvent end(std::int32_t answer, bool last) {
  CompletionEvent event{.answer = answer};
  event.finish = Finish{.reason = FinishReason::kStop};
  event.last = last;
  return event;
}

class ChannelTest : public ::testing::Test {
 protected:
  std::shared_ptr<Notice> engine = std::make_shared<Notice>();
  int announced = 0;
  std::shared_ptr<CompletionChannel> channel = std::make_shared<CompletionChannel>(engine, [this] { ++announced; });
};

TEST_F(ChannelTest, WhatASlowReaderMissedComesAsOneEvent) {
  for (TokenId t = 0; t < 100; ++t) channel->send(piece(0, t));
  for (TokenId t = 0; t < 16; ++t) EXPECT_EQ(channel->next()->tokens, std::vector<TokenId>{t});
  EXPECT_FALSE(channel->next());
  channel->flush();
  const auto rest = channel->next();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->tokens.size(), 84u);
  EXPECT_EQ(rest->tokens.front(), 16);
  EXPECT_EQ(rest->tokens.back(), 99);
  EXPECT_EQ(rest->text.size(), 84u);
  EXPECT_FALSE(channel->next());
}

TEST_F(ChannelTest, TheLastEventStaysBehindThoseOfOtherAnswers) {
  for (TokenId t = 0; t < 16; ++t) channel->send(piece(0, t));
  channel->send(piece(1, 1));  // waits from here on
  channel->send(piece(2, 2));
  channel->send(piece(0, 3));
  channel->send(end(2, false));
  channel->send(end(0, false));
  channel->send(end(1, true));
  channel->close();
  std::vector<CompletionEvent> events;
  while (auto event = channel->next()) events.push_back(std::move(*event));
  ASSERT_EQ(events.size(), 19u);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].last, i == 18) << i;
  EXPECT_EQ(events[18].answer, 1);
  EXPECT_EQ(events[18].tokens, std::vector<TokenId>{1});
  for (std::size_t i = 16; i < 19; ++i) EXPECT_TRUE(events[i].finish) << i;
}

TEST_F(ChannelTest, AfterTheCloseTheReaderNeedsNoEngine) {
  for (TokenId t = 0; t < 50; ++t) channel->send(piece(t % 3, t));
  for (const std::int32_t answer : {0, 1, 2}) channel->send(end(answer, answer == 2));
  channel->close();
  const auto stream = make_stream(std::exchange(channel, nullptr));
  engine.reset();
  const auto all = collect(*stream, kPatience);
  ASSERT_TRUE(all.has_value());
  ASSERT_EQ(all->answers.size(), 3u);
  for (const CompletionEvent& answer : all->answers) EXPECT_TRUE(answer.finish && answer.tokens.size() >= 16);
  EXPECT_FALSE(stream->wait(kPatience)) << "after the last event nothing, and at once";
}

TEST_F(ChannelTest, DroppingAStreamCancelsUnlessItHasEnded) {
  make_stream(channel).reset();
  EXPECT_TRUE(channel->cancelled());
  const auto other = std::make_shared<CompletionChannel>(engine, nullptr);
  other->send(end(0, true));
  auto stream = make_stream(other);
  EXPECT_TRUE(stream->next()->last);
  stream.reset();
  EXPECT_FALSE(other->cancelled());
}

TEST_F(ChannelTest, EveryEventIsAnnounced) {
  channel->send(piece(0, 1));
  EXPECT_EQ(announced, 1);
  for (TokenId t = 0; t < 20; ++t) channel->send(piece(0, t));
  EXPECT_EQ(announced, 16) << "those that wait are not there yet";
  while (channel->next()) {
  }
  channel->flush();
  EXPECT_EQ(announced, 17);
}

// Writer and reader at random speeds; the parts put together are what was sent.
TEST(Channel, EventsOfTwoThreadsAddUp) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto channel = std::make_shared<CompletionChannel>(std::make_shared<Notice>(), nullptr);
    const std::int32_t answers = 1 + static_cast<std::int32_t>(seed % 4);
    std::thread writer([&] {
      std::mt19937_64 random(seed);
      for (TokenId t = 0; t < 300; ++t) {
        channel->send(piece(static_cast<std::int32_t>(t % answers), t));
        if (random() % 20 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      }
      for (std::int32_t a = 0; a < answers; ++a) channel->send(end(a, a + 1 == answers));
      channel->close();
    });
    std::mt19937_64 random(seed + 1000);
    const auto stream = make_stream(channel);
    std::vector<CompletionEvent> got(static_cast<std::size_t>(answers));
    for (bool last = false; !last;) {
      if (random() % 30 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
      auto event = stream->wait(Duration::max());
      ASSERT_TRUE(event);
      last = event->last;
      append_event(got[static_cast<std::size_t>(event->answer)], std::move(*event));
    }
    writer.join();
    for (std::int32_t a = 0; a < answers; ++a) {
      const CompletionEvent& answer = got[static_cast<std::size_t>(a)];
      ASSERT_TRUE(answer.finish);
      std::vector<TokenId> expected;
      for (TokenId t = a; t < 300; t += answers) expected.push_back(t);
      ASSERT_EQ(answer.tokens, expected);
      ASSERT_EQ(answer.text.size(), expected.size());
    }
    ASSERT_FALSE(stream->next());
  }
}

}  // namespace
}  // namespace weir::engine
