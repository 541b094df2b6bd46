// SPDX-License-Identifier: Apache-2.0
#include "scheduler/standing_queue.h"

#include <gtest/gtest.h>

#include <random>

#include "scheduler/test_engine.h"

namespace weir::scheduler {
namespace {

using std::chrono::milliseconds, std::chrono::seconds;

SchedulerOptions shedding() { return {.token_budget = 32, .max_running = 4, .wait = {.target = Duration::zero()}}; }

// Offers requests at random times and notes how long each that was taken waited for its first row.
class Offering {
 public:
  explicit Offering(TestEngine& engine) : e(engine) {}

  void run(Duration time, Duration between, const std::string& tenant = {}) {
    const TimePoint end = e.clock.now() + time;
    std::exponential_distribution<double> gap(1 / to_seconds(between));
    TimePoint due = e.clock.now();
    while (e.clock.now() < end) {
      for (; due <= e.clock.now(); due += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(gap(random_)))) offer(tenant);
      if (e.scheduler.idle()) {
        e.clock.advance(due - e.clock.now());
      } else {
        step();
      }
    }
  }
  bool offer(const std::string& tenant = {}) {
    Request request = talkative(4, 20, 1 + static_cast<TokenId>(random_() % 50) * 1000);
    request.tenant = tenant;
    const auto id = e.try_submit(std::move(request));
    ++(id ? taken : refused);
    if (id) arrived_[*id] = e.clock.now();
    EXPECT_TRUE(id || id.error().code == ErrorCode::kExhausted);
    return id.has_value();
  }
  void step() {
    const TimePoint begin = e.clock.now();
    for (const Row& row : e.step().rows) {
      const auto found = arrived_.find(row.sequence);
      if (found == arrived_.end()) continue;
      waits.push_back(begin - found->second);
      arrived_.erase(found);
    }
  }
  Duration wait(double quantile) {
    std::ranges::sort(waits);
    return waits.at(static_cast<std::size_t>(quantile * static_cast<double>(waits.size() - 1)));
  }

  TestEngine& e;
  std::vector<Duration> waits;
  std::int64_t taken = 0, refused = 0;

 private:
  std::mt19937_64 random_{3};
  std::map<SeqId, TimePoint> arrived_;
};

// A step takes 1 ms and 1 more for each position of a prompt: 500 requests of 4 + 20 tokens, four at a time, take 3.6 s.
constexpr Duration kSustainable = std::chrono::microseconds(7'200);

TEST(StandingQueue, ABurstMayWaitAsLongAsItTakes) {
  TestEngine e(blocks_of_4(200), shedding());
  Offering offering(e);
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(offering.offer());
  while (!e.scheduler.idle()) offering.step();
  EXPECT_GT(offering.wait(1), seconds(3));
  EXPECT_TRUE(offering.offer()) << "and it is over when it is over";
}

TEST(StandingQueue, OverloadIsRefusedAndWhoIsTakenDoesNotWaitLong) {
  TestEngine e(blocks_of_4(200), shedding());
  Offering offering(e);
  offering.run(seconds(100), kSustainable / 2);
  EXPECT_GT(offering.refused, offering.taken / 2);
  const double possible = to_seconds(seconds(100)) / to_seconds(kSustainable);
  EXPECT_GT(static_cast<double>(offering.taken), 0.93 * possible) << "nothing is given away";
  EXPECT_LT(offering.wait(1), seconds(3)) << "in the first seconds, when it might have been a burst";
  offering.waits.clear();
  offering.run(seconds(100), kSustainable / 2);
  EXPECT_LT(offering.wait(0.99), milliseconds(150));
  e.drain();
}

// Requests so long that the target is a few of them: chance empties such a queue every few seconds, which does not end the overload.
TEST(StandingQueue, AnOverloadOfLongRequestsIsOneEvenWhenItsQueueEmptiesNowAndThen) {
  SchedulerOptions options = shedding();
  options.max_running = 32;
  options.token_budget = 64;
  TestEngine e(blocks_of_4(1000), options);
  e.step_time = milliseconds(40);  // 49 requests a second, 0.7 s each: the target is 100 ms, or 5 of them
  Offering offering(e);
  offering.run(seconds(600), milliseconds(10));
  EXPECT_LT(offering.wait(0.99), milliseconds(600));
  EXPECT_GT(static_cast<double>(offering.taken), 0.93 * 600 * 49);
  e.drain();
}

// What is free is given away, however long the prompt, and however bad things were a moment ago.
TEST(StandingQueue, AfterAnOverloadAnIdleEngineTakesALongPrompt) {
  TestEngine e(blocks_of_4(200), shedding());
  Offering offering(e);
  offering.run(seconds(20), kSustainable / 2);
  EXPECT_GT(offering.refused, 0);
  e.drain();
  Request request = talkative(300, 4);
  EXPECT_TRUE(e.try_submit(std::move(request)));
  e.drain();
}

TEST(StandingQueue, BelowTheLimitNobodyIsRefused) {
  TestEngine e(blocks_of_4(200), shedding());
  Offering offering(e);
  offering.run(seconds(100), kSustainable * 10 / 8);
  EXPECT_EQ(offering.refused, 0);
  offering.run(seconds(100), kSustainable * 10 / 9);
  EXPECT_EQ(offering.refused, 0);
}

// Clients that wait for their answers: six times as many as there are places. Their queue is long, and does not grow.
TEST(StandingQueue, AFixedNumberOfClientsMayWait) {
  TestEngine e(blocks_of_4(200), shedding());
  Offering offering(e);
  for (int i = 0; i < 24; ++i) EXPECT_TRUE(offering.offer());
  const TimePoint end = e.clock.now() + seconds(60);
  while (e.clock.now() < end) {
    offering.step();
    for (std::size_t i = 0; i < e.finished.size(); ++i) offering.offer();
  }
  EXPECT_EQ(offering.refused, 0);
  EXPECT_GT(offering.wait(0.5), milliseconds(130)) << "which is late";
  // One client more for each that ends, now and then: the queue grows slowly, until waits are too long in any case.
  for (int extra = 0; offering.refused == 0 && extra < 10'000; ++extra) {
    for (int i = 0; i < 20; ++i) {
      offering.step();
      for (std::size_t f = 0; f < e.finished.size(); ++f) offering.offer();
    }
    offering.offer();
  }
  EXPECT_GT(offering.refused, 0);
  EXPECT_LT(offering.wait(1), seconds(33));
}

TEST(StandingQueue, WithoutALimitTheQueueIsBoundedByItsLength) {
  SchedulerOptions options = shedding();
  options.wait = {};
  options.max_waiting = 300;
  TestEngine e(blocks_of_4(200), options);
  Offering offering(e);
  offering.run(seconds(20), kSustainable / 2);
  EXPECT_GT(e.scheduler.stats().waiting, 290);
  EXPECT_GT(offering.wait(0.9), seconds(2));
}

// Whose turn would come soon is not refused for others' sake.
TEST(StandingQueue, ATenantOfItsOwnIsTakenWhereOthersOverloadIt) {
  TestEngine e(blocks_of_4(200), shedding(), fair_share());
  Offering heavy(e), light(e);
  heavy.run(seconds(10), kSustainable / 3, "heavy");
  for (int i = 0; i < 40; ++i) {
    heavy.run(milliseconds(250), kSustainable / 3, "heavy");
    EXPECT_TRUE(light.offer("light")) << i << ", " << e.scheduler.stats().waiting << " wait";
  }
  EXPECT_GT(heavy.refused, heavy.taken);
}

TEST(StandingQueue, LongRequestsMayWaitLonger) {
  StandingQueue queue({.target = Duration::zero()});
  EXPECT_EQ(queue.target(), milliseconds(100));
  for (int i = 0; i < 50; ++i) queue.ended(seconds(40), 20, false);
  EXPECT_EQ(queue.target(), seconds(4));
  for (int i = 0; i < 200; ++i) queue.ended(seconds(4000), 20, false);
  EXPECT_EQ(queue.target(), seconds(10));
}

}  // namespace
}  // namespace weir::scheduler
