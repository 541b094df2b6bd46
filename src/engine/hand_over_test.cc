// SPDX-License-Identifier: Apache-2.0
// The queues between threads: order, bounds, and that no value and no notice is lost (run it under the thread sanitizer too).
#include "engine/hand_over.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace weir::engine {
namespace {

constexpr Duration kPatience = std::chrono::seconds(30);

TEST(ManyToOne, RefusesWhenFullAndLeavesTheValue) {
  ManyToOne<std::unique_ptr<int>> queue(3);  // rounded up to 4
  for (int i = 0; i < 4; ++i) {
    auto value = std::make_unique<int>(i);
    EXPECT_TRUE(queue.push(value));
    EXPECT_EQ(value, nullptr);
  }
  auto fifth = std::make_unique<int>(4);
  EXPECT_FALSE(queue.push(fifth));
  ASSERT_NE(fifth, nullptr);
  EXPECT_EQ(**queue.pop(), 0);
  EXPECT_TRUE(queue.push(fifth));
  for (int i = 1; i < 5; ++i) EXPECT_EQ(**queue.pop(), i);
  EXPECT_FALSE(queue.pop());
}

TEST(ManyToOne, KeepsTheOrderOfEachOfManyThreads) {
  constexpr std::size_t kThreads = 4, kEach = 5000;
  ManyToOne<std::unique_ptr<std::size_t>> queue(64);
  Notice notice;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kEach; ++i) {
        auto value = std::make_unique<std::size_t>(t * kEach + i);
        while (!queue.push(value)) std::this_thread::yield();
        notice.give();
      }
    });
  }
  std::vector<std::size_t> next(kThreads, 0);
  for (std::size_t seen = 0; seen < kThreads * kEach;) {
    auto value = queue.pop();
    if (!value) {
      notice.wait(kPatience);
      continue;
    }
    ++seen;
    const std::size_t thread = **value / kEach;
    ASSERT_EQ(**value % kEach, next[thread]++);
  }
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(queue.pop());
}

TEST(OneToOne, PassesEverythingInOrder) {
  constexpr int kCount = 20'000;
  OneToOne<std::vector<int>> ring(16);
  Notice full, empty;
  std::thread reader([&] {
    for (int i = 0; i < kCount;) {
      const auto value = ring.pop();
      if (value) {
        ASSERT_EQ(value->at(0), i++);
        full.give();
      } else {
        empty.wait(kPatience);
      }
    }
  });
  for (int i = 0; i < kCount; ++i) {
    std::vector<int> value = {i};
    while (!ring.push(value)) full.wait(kPatience);
    ASSERT_TRUE(value.empty());
    empty.give();
  }
  reader.join();
  EXPECT_FALSE(ring.pop());
}

TEST(Notice, OneThatComesFirstIsKeptAndSeveralAreOne) {
  Notice notice;
  notice.give();
  notice.give();
  notice.wait(kPatience);
  notice.wait(std::chrono::milliseconds(1));  // nothing is left: returns by time
}

// Each round waits for the other side's notice, with a limit that would make a single lost one fail the test.
TEST(Notice, NoneIsLost) {
  Notice ping, pong;
  std::atomic<int> asked{0}, answered{0};
  constexpr int kRounds = 20'000;
  const auto wait_for = [](Notice& notice, const std::atomic<int>& count, int wanted) {
    const TimePoint end = steady_clock().now() + kPatience;
    while (count.load(std::memory_order_relaxed) < wanted) {
      notice.wait(kPatience);
      if (steady_clock().now() >= end) return false;
    }
    return true;
  };
  std::thread other([&] {
    for (int i = 1; i <= kRounds; ++i) {
      if (!wait_for(ping, asked, i)) return;
      answered.store(i, std::memory_order_relaxed);
      pong.give();
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    asked.store(i, std::memory_order_relaxed);
    ping.give();
    ASSERT_TRUE(wait_for(pong, answered, i)) << "round " << i;
  }
  other.join();
}

TEST(Notice, WaitsOfAnyLengthAreAllowed) {
  Notice notice;
  std::thread other([&] { notice.give(); });
  notice.wait(Duration::max());
  other.join();
}

}  // namespace
}  // namespace weir::engine
