// SPDX-License-Identifier: Apache-2.0
#include "speculation/draft_length.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "speculation/test_target.h"

namespace weir::speculation {
namespace {

RowCost measured(const StepTime& time, int noise_percent = 0) {
  RowCost cost;
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    for (std::int64_t rows = 1; rows <= 16; ++rows) {
      const double factor = 1 + 0.01 * noise_percent * (static_cast<double>(random() % 1000) / 500 - 1);
      cost.record(rows, Duration(static_cast<std::int64_t>(time(rows) * factor * 1e9)));
    }
  }
  return cost;
}

TEST(RowCost, LearnsTheShapeOfAnyMachine) {
  for (const StepTime& time : {memory_bound(), compute_bound(), in_groups()}) {
    const RowCost exact = measured(time), noisy = measured(time, 20);
    for (std::int64_t rows = 1; rows <= 16; ++rows) {
      EXPECT_NEAR(exact.seconds(rows) / time(rows), 1, 0.01) << rows;
      EXPECT_NEAR(noisy.seconds(rows) / time(rows), 1, 0.15) << rows;
    }
  }
}

TEST(RowCost, FollowsAContextThatGrows) {
  RowCost cost = measured(memory_bound());
  for (int i = 0; i < 40; ++i) cost.record(5, Duration(static_cast<std::int64_t>(3 * memory_bound()(5) * 1e9)));
  EXPECT_NEAR(cost.seconds(5) / memory_bound()(5), 3, 0.1);
  EXPECT_GE(cost.seconds(1) / memory_bound()(1), 1.6) << "part of it is the level of all steps";
}

TEST(RowCost, OneDisturbedStepChangesLittle) {
  RowCost cost = measured(memory_bound());
  const double before = cost.relative(4);
  cost.record(4, std::chrono::seconds(5));
  EXPECT_LE(cost.relative(4), before * 1.08);
}

TEST(RowCost, TakesNoNonsense) {
  RowCost cost;
  cost.record(0, std::chrono::seconds(1));
  cost.record(-5, std::chrono::seconds(1));
  cost.record(3, Duration(-1));
  EXPECT_EQ(cost.within_reach(1), 1) << "nothing was measured";
  cost.record(1, std::chrono::milliseconds(5));
  cost.record(INT64_MAX, std::chrono::milliseconds(9));
  EXPECT_NEAR(cost.seconds(1), 0.005, 1e-9);
  EXPECT_TRUE(std::isfinite(cost.seconds(INT64_MAX)));
  for (std::int64_t rows = 1; rows < 5'000; ++rows) ASSERT_GE(cost.relative(rows), 1) << rows;
}

TEST(RowCost, GrowsByStepsIntoWhatWasNotMeasured) {
  RowCost cost;
  std::vector<std::int64_t> reached;
  for (std::int64_t rows = 1; rows < 30; rows = cost.within_reach(1)) {
    reached.push_back(rows);
    cost.record(rows, std::chrono::milliseconds(5));
  }
  EXPECT_EQ(reached, (std::vector<std::int64_t>{1, 2, 3, 4, 6, 9, 13, 19, 28}));
}

TEST(Acceptance, FollowsWhatWasMeasuredForEachStrength) {
  Acceptance general;
  Acceptance own = Acceptance::child_of(general);
  EXPECT_NEAR(own.probability(3), general.probability(3), 1e-6);
  for (int i = 0; i < 200; ++i) {
    own.record(2, i % 10 == 0);
    own.record(40, true);
  }
  EXPECT_NEAR(own.probability(2), 0.1f, 0.06f);
  EXPECT_GE(own.probability(64), 0.97f);
  EXPECT_NEAR(own.probability(7), general.probability(7), 1e-6) << "another strength";
  for (int i = 0; i < 60; ++i) own.record(2, true);
  EXPECT_GE(own.probability(2), 0.85f) << "old outcomes fade";
}

TEST(Acceptance, ANewSequenceStartsWithWhatOthersShowed) {
  Acceptance general;
  for (int i = 0; i < 500; ++i) general.record(4, false);
  EXPECT_LE(Acceptance::child_of(general).probability(4), 0.02f);
}

class Lengths : public ::testing::Test {
 protected:
  double rate(std::span<const Prospect> prospects, std::span<const std::int32_t> lengths, std::int64_t rows, std::int64_t streams,
              const RowCost& cost) {
    double tokens = static_cast<double>(streams);
    std::int64_t more = 0;
    for (std::size_t i = 0; i < prospects.size(); ++i) {
      if (prospects[i].acceptance != nullptr) tokens += expected_right(*prospects[i].acceptance, prospects[i].offer.strength, lengths[i]);
      more += lengths[i];
    }
    return tokens / cost.seconds(rows + more);
  }
  LengthChooser chooser;
};

TEST_F(Lengths, AreTheBestOfAll) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const RowCost cost = measured(round % 3 == 0 ? memory_bound() : round % 3 == 1 ? compute_bound() : in_groups());
    Acceptance acceptance[3];
    std::vector<Prospect> prospects;
    for (Acceptance& a : acceptance) {
      const std::uint32_t chance = random() % 100;
      for (int i = 0; i < 300; ++i) a.record(1 + static_cast<std::int32_t>(random() % 40), random() % 100 < chance);
      prospects.push_back({&a, {1 + static_cast<std::int32_t>(random() % 30), static_cast<std::int32_t>(random() % 6)}, nullptr});
    }
    const std::int64_t streams = 3 + round % 2, rows = streams + round % 5;
    std::vector<std::int32_t> lengths(3), best(3), tried(3);
    chooser.choose(prospects, rows, streams, cost, {.per_sequence = 5, .per_step = 64, .least_gain = 0}, lengths);
    double most = rate(prospects, best, rows, streams, cost);
    for (tried[0] = 0; tried[0] <= prospects[0].offer.most; ++tried[0]) {
      for (tried[1] = 0; tried[1] <= prospects[1].offer.most; ++tried[1]) {
        for (tried[2] = 0; tried[2] <= prospects[2].offer.most; ++tried[2])
          most = std::max(most, rate(prospects, tried, rows, streams, cost));
      }
    }
    EXPECT_GE(rate(prospects, lengths, rows, streams, cost), most * 0.9999) << "round " << round;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LE(lengths[i], prospects[i].offer.most);
  }
}

TEST_F(Lengths, ShortRepeatsGetShorterDrafts) {
  const RowCost cost = measured(memory_bound());
  const Acceptance first;
  std::int32_t before = 0;
  for (const std::int32_t strength : {2, 5, 32}) {
    const Prospect prospect{&first, {strength, 100}, nullptr};
    std::int32_t length = 0;
    chooser.choose({&prospect, 1}, 1, 1, cost, {.per_sequence = 15}, {&length, 1});
    EXPECT_GT(length, before) << strength;
    before = length;
  }
}

TEST_F(Lengths, NoneWhereRowsCostFull) {
  const RowCost cost = measured(compute_bound());
  const Acceptance first;
  const Prospect prospect{&first, {32, 100}, nullptr};
  std::int32_t length = 7;
  chooser.choose({&prospect, 1}, 1, 1, cost, {}, {&length, 1});
  EXPECT_EQ(length, 0);
}

TEST_F(Lengths, TheStepsLimitIsSharedByWorth) {
  const RowCost cost = measured([](std::int64_t) { return 0.01; });
  Acceptance good, poor;
  for (int i = 0; i < 300; ++i) {
    good.record(2 + i % 40, true);
    poor.record(2 + i % 40, i % 3 == 0);
  }
  const Prospect prospects[] = {{&poor, {2, 50}, nullptr}, {&good, {2, 50}, nullptr}};
  std::int32_t lengths[2];
  chooser.choose(prospects, 2, 2, cost, {.per_sequence = 16, .per_step = 6}, lengths);
  EXPECT_EQ(lengths[0] + lengths[1], 6);
  EXPECT_GE(lengths[1], 5);
}

}  // namespace
}  // namespace weir::speculation
