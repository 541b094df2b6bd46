// SPDX-License-Identifier: Apache-2.0
// Buckets on a clock that stands still until it is told to move: every refusal says exactly when it ends.
#include "serving/limits.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

namespace weir::serving {
namespace {

using namespace std::chrono_literals;
using Why = KeyUsage::Refusal::Why;

TEST(TokenBucket, HoldsAMinutesWorthAndRefillsSteadily) {
  FakeClock clock;
  TokenBucket bucket(60, clock.now());
  EXPECT_EQ(bucket.left(clock.now()), 60);
  bucket.take(60, clock.now());
  EXPECT_EQ(bucket.left(clock.now()), 0);
  EXPECT_EQ(bucket.wait_for(1, clock.now()), 1s);
  EXPECT_EQ(bucket.wait_for(10, clock.now()), 10s);
  clock.advance(9999ms);
  EXPECT_GT(bucket.wait_for(10, clock.now()), 0s);
  clock.advance(1ms);
  EXPECT_EQ(bucket.wait_for(10, clock.now()), 0s);
  clock.advance(1h);
  EXPECT_EQ(bucket.left(clock.now()), 60);  // never more
}

TEST(TokenBucket, WhatIsLargerThanItIsGrantedWhenItIsFullAndLeavesADebt) {
  FakeClock clock;
  TokenBucket bucket(600, clock.now());
  EXPECT_EQ(bucket.wait_for(1800, clock.now()), 0s);
  bucket.take(1800, clock.now());
  EXPECT_EQ(bucket.left(clock.now()), 0);
  EXPECT_NEAR(to_seconds(bucket.wait_for(1, clock.now())), 120.1, 0.001);  // 1201 tokens at 10 a second
}

TEST(TokenBucket, NoLimitGrantsEverything) {
  FakeClock clock;
  TokenBucket bucket(0, clock.now());
  EXPECT_EQ(bucket.wait_for(1'000'000'000'000, clock.now()), 0s);
}

TEST(TokenBucket, AChangedLimitKeepsTheShareThatIsLeft) {
  FakeClock clock;
  TokenBucket bucket(100, clock.now());
  bucket.take(75, clock.now());
  bucket.set_limit(1000, clock.now());
  EXPECT_EQ(bucket.left(clock.now()), 250);
  bucket.set_limit(0, clock.now());
  bucket.set_limit(40, clock.now());
  EXPECT_EQ(bucket.left(clock.now()), 40);
}

TEST(KeyUsage, RequestsPerMinute) {
  FakeClock clock;
  KeyUsage usage({.requests_per_minute = 2}, clock);
  EXPECT_FALSE(usage.admit(1));
  EXPECT_FALSE(usage.admit(1));
  const auto refusal = usage.admit(1);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, Why::kRequests);
  EXPECT_EQ(refusal->limit, 2);
  EXPECT_NEAR(to_seconds(refusal->retry_after), 30, 0.001);
  clock.advance(refusal->retry_after);  // who comes when he was told to is not refused again
  EXPECT_FALSE(usage.admit(1));
  EXPECT_EQ(usage.running(), 3);
}

TEST(KeyUsage, WhatWasNotGeneratedComesBack) {
  FakeClock clock;
  KeyUsage usage({.tokens_per_minute = 1000}, clock);
  EXPECT_FALSE(usage.admit(900));
  ASSERT_TRUE(usage.admit(200));
  EXPECT_EQ(usage.admit(200)->why, Why::kTokens);
  usage.settle(900, 300);
  usage.end(1s);
  EXPECT_FALSE(usage.admit(200));
  EXPECT_EQ(usage.headers()[1].second, "500");  // 1000 - 300 - 200
}

TEST(KeyUsage, MoreThanWasChargedIsChargedAtTheEnd) {
  FakeClock clock;
  KeyUsage usage({.tokens_per_minute = 1000}, clock);
  EXPECT_FALSE(usage.admit(100));
  usage.settle(100, 700);
  EXPECT_EQ(usage.headers()[1].second, "300");
}

TEST(KeyUsage, ARefusedRequestCostsNothing) {
  FakeClock clock;
  KeyUsage usage({.requests_per_minute = 10, .tokens_per_minute = 100}, clock);
  EXPECT_FALSE(usage.admit(90));
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(usage.admit(50));
  EXPECT_EQ(usage.headers()[1], (std::pair<std::string, std::string>("x-ratelimit-remaining-requests", "9")));
}

TEST(KeyUsage, ConcurrentRequestsAreCountedOffAtTheirEnd) {
  FakeClock clock;
  KeyUsage usage({.concurrent = 2}, clock);
  EXPECT_FALSE(usage.admit(1));
  EXPECT_FALSE(usage.admit(1));
  ASSERT_TRUE(usage.admit(1));
  EXPECT_EQ(usage.admit(1)->why, Why::kConcurrent);
  EXPECT_GT(usage.admit(1)->retry_after, 0s);
  usage.end(2s);
  EXPECT_FALSE(usage.admit(1));
}

TEST(KeyUsage, HeadersAreOpenAis) {
  FakeClock clock;
  KeyUsage usage({.requests_per_minute = 60, .tokens_per_minute = 6000}, clock);
  EXPECT_FALSE(usage.admit(600));
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"x-ratelimit-limit-requests", "60"}, {"x-ratelimit-remaining-requests", "59"}, {"x-ratelimit-reset-requests", "1s"},
      {"x-ratelimit-limit-tokens", "6000"}, {"x-ratelimit-remaining-tokens", "5400"}, {"x-ratelimit-reset-tokens", "6s"}};
  EXPECT_EQ(usage.headers(), wanted);
  EXPECT_TRUE(KeyUsage({}, clock).headers().empty());
}

TEST(KeyUsage, OverTimeTheRateIsHeldWhateverRequestsCome) {
  FakeClock clock;
  KeyUsage usage({.tokens_per_minute = 6000}, clock);
  std::mt19937 random(7);
  std::int64_t used = 0;
  for (int i = 0; i < 20000; ++i) {
    clock.advance(std::chrono::milliseconds(random() % 200));
    const std::int64_t charged = 1 + random() % 9000;
    if (usage.admit(charged)) continue;
    const std::int64_t actual = random() % (charged + 1);
    usage.settle(charged, actual);
    usage.end(1s);
    used += actual;
  }
  const double minutes = to_seconds(clock.now().time_since_epoch()) / 60;
  EXPECT_LE(static_cast<double>(used), 6000 * minutes + 6000 + 9000);  // the first minute's worth, and the last one's debt
  EXPECT_GE(static_cast<double>(used), 6000 * minutes * 0.5);
}

TEST(KeyUsage, ThreadsTogetherGetNoMoreThanTheLimit) {
  FakeClock clock;
  KeyUsage usage({.requests_per_minute = 100}, clock);
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) admitted += usage.admit(1) ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 100);
}

TEST(ResetTime, IsWrittenAsOpenAiDoes) {
  EXPECT_EQ(reset_time(0s), "0ms");
  EXPECT_EQ(reset_time(250ms), "250ms");
  EXPECT_EQ(reset_time(1s), "1s");
  EXPECT_EQ(reset_time(1001ms), "2s");
  EXPECT_EQ(reset_time(6min), "6m0s");
  EXPECT_EQ(reset_time(25h + 61s), "25h1m1s");
  EXPECT_EQ(reset_time(-5s), "0ms");
}

}  // namespace
}  // namespace weir::serving
