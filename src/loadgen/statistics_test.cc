// SPDX-License-Identifier: Apache-2.0
#include "loadgen/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "loadgen/distribution.h"
#include "loadgen/random.h"

namespace weir::loadgen {
namespace {

TEST(Percentile, InterpolatesBetweenNeighbours) {
  const std::vector<double> eight{500, 900, 1300, 1700, 2100, 2500, 2900, 3300};
  EXPECT_DOUBLE_EQ(percentile(eight, 50), 1900);
  EXPECT_DOUBLE_EQ(percentile(eight, 99), 2900 + 0.93 * 400);  // position 6.93
  EXPECT_DOUBLE_EQ(percentile(eight, 0), 500);
  EXPECT_DOUBLE_EQ(percentile(eight, 100), 3300);
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0);
}

TEST(EarlyStopping, MinimumCountsEqualLoadGensTable) {
  const std::int64_t over[] = {0, 1, 2, 5, 10, 100};
  const struct {
    double percentile;
    std::int64_t needed[6];
  } rows[] = {{0.90, {44, 64, 81, 127, 197, 1246}},
              {0.95, {90, 130, 165, 259, 398, 2504}},
              {0.97, {152, 219, 277, 433, 667, 4182}},
              {0.99, {459, 662, 838, 1307, 2010, 12571}},
              {0.999, {4603, 6636, 8403, 13105, 20140, 125826}}};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < std::size(over); ++i)
      EXPECT_EQ(early_stopping_minimum(row.percentile, over[i]), row.needed[i]) << row.percentile << ", " << over[i] << " over";
}

TEST(EarlyStopping, EstimateDropsAsManyAsTheSamplesAllow) {
  std::vector<double> sorted(661);
  for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<double>(i);
  EXPECT_FALSE(early_stopping_estimate(sorted, 0.99));
  sorted.push_back(661);
  ASSERT_TRUE(early_stopping_estimate(sorted, 0.99));
  EXPECT_EQ(early_stopping_estimate(sorted, 0.99)->discarded, 1);
  EXPECT_EQ(early_stopping_estimate(sorted, 0.99)->estimate, 661);
  EXPECT_EQ(early_stopping_estimate(sorted, 0.90)->discarded, 48);  // 48 over need 655 samples, 49 need 667
  EXPECT_LE(early_stopping_minimum(0.90, 48), 662);
  EXPECT_GT(early_stopping_minimum(0.90, 49), 662);
}

TEST(IncompleteFunctions, KnownValues) {
  EXPECT_NEAR(incomplete_beta(0.5, 2, 2), 0.5, 1e-14);
  EXPECT_NEAR(incomplete_beta(0.25, 2, 3), 0.26171875, 1e-14);  // the polynomial 6x²−8x³+3x⁴
  EXPECT_NEAR(incomplete_beta(0.9, 44, 1), std::pow(0.9, 44), 1e-15);
  EXPECT_NEAR(incomplete_gamma(1, 2), 1 - std::exp(-2), 1e-14);
  EXPECT_NEAR(incomplete_gamma(0.5, 0.25), std::erf(0.5), 1e-13);
  EXPECT_NEAR(incomplete_gamma(3, 10), 1 - std::exp(-10) * (1 + 10 + 50), 1e-13);
}

TEST(KolmogorovSmirnovTest, KnownDistanceAndChance) {
  const auto uniform = [](double x) { return std::clamp(x, 0.0, 1.0); };
  const auto result = kolmogorov_smirnov({0.1, 0.2, 0.3, 0.4}, uniform);
  EXPECT_NEAR(result.distance, 0.6, 1e-12);
  EXPECT_LT(result.p_value, 0.1);
  std::vector<double> even;
  for (int i = 0; i < 1000; ++i) even.push_back((i + 0.5) / 1000);
  EXPECT_GT(kolmogorov_smirnov(even, uniform).p_value, 0.999);
}

TEST(RandomNumbers, AreTheSameEverywhereAndDifferByStream) {
  Random a(42, 1), b(42, 1), c(42, 2);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
  Random fixed(7);
  const std::uint64_t first = fixed.next();
  EXPECT_EQ(first, Random(7, 0).next());
}

TEST(RandomNumbers, FollowTheirDistributions) {
  Random random(3);
  std::vector<double> uniform, exponential, normal, gamma, thin_gamma;
  for (int i = 0; i < 20000; ++i) {
    uniform.push_back(random.uniform());
    exponential.push_back(random.exponential(2));
    normal.push_back(random.normal(5, 2));
    gamma.push_back(random.gamma(3, 2));
    thin_gamma.push_back(random.gamma(0.25, 1));
  }
  EXPECT_GT(kolmogorov_smirnov(uniform, [](double x) { return x; }).p_value, 0.01);
  EXPECT_GT(kolmogorov_smirnov(exponential, [](double x) { return 1 - std::exp(-x / 2); }).p_value, 0.01);
  EXPECT_GT(kolmogorov_smirnov(normal, [](double x) { return 0.5 * std::erfc(-(x - 5) / 2 / std::sqrt(2)); }).p_value, 0.01);
  EXPECT_GT(kolmogorov_smirnov(gamma, [](double x) { return incomplete_gamma(3, x / 2); }).p_value, 0.01);
  EXPECT_GT(kolmogorov_smirnov(thin_gamma, [](double x) { return incomplete_gamma(0.25, x); }).p_value, 0.01);
}

TEST(Bootstrap, CoversTheTruthAboutAsOftenAsItSays) {
  int covered = 0;
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    Random random(trial);
    std::vector<double> samples;
    for (int i = 0; i < 100; ++i) samples.push_back(random.exponential(1));
    const auto interval = bootstrap(samples, mean_of, 0.95, 1, 200, trial);
    ASSERT_TRUE(interval);
    covered += interval->low <= 1 && 1 <= interval->high;
  }
  EXPECT_GE(covered, 175);  // 95 % is 190; the bootstrap of a skewed mean covers a little less
  EXPECT_LE(covered, 199);
  EXPECT_FALSE(bootstrap(std::vector<double>(7, 1.0), mean_of, 0.95, 1, 200, 1));
}

TEST(Bootstrap, BlocksWidenTheIntervalOfDependentSamples) {
  std::vector<double> slow;  // each value ten times: one tenth of the information
  Random random(9);
  for (int i = 0; i < 100; ++i) slow.insert(slow.end(), 10, random.normal(0, 1));
  const auto single = bootstrap(slow, mean_of, 0.95, 1, 500, 1), blocks = bootstrap(slow, mean_of, 0.95, 20, 500, 1);
  EXPECT_GT(blocks->high - blocks->low, 2 * (single->high - single->low));
}

TEST(Distributions, ParseAndDraw) {
  Random random(5);
  EXPECT_DOUBLE_EQ(Distribution::parse("250ms", Distribution::Unit::kSeconds)->draw(random), 0.25);
  const auto lognormal = Distribution::parse("lognormal:100,50", Distribution::Unit::kPlain);
  ASSERT_TRUE(lognormal) << lognormal.error().message;
  std::vector<double> drawn;
  for (int i = 0; i < 50000; ++i) drawn.push_back(lognormal->draw(random));
  EXPECT_NEAR(mean_of(drawn), 100, 1.5);
  EXPECT_NEAR(deviation_of(drawn), 50, 2);
  const auto empirical = Distribution::parse("empirical:1,1,4", Distribution::Unit::kPlain);
  EXPECT_DOUBLE_EQ(empirical->mean(), 2);
  for (const char* bad : {"", "x", "normal:5", "uniform:5,1", "nothing:1", "-1", "lognormal:0,1", "inf", "constant:1,2", "1e999"})
    EXPECT_FALSE(Distribution::parse(bad, Distribution::Unit::kPlain)) << bad;
  for (const char* bad : {"5parsec", "ms", "1e30s", "-5ms", "nan"}) EXPECT_FALSE(parse_seconds(bad)) << bad;
  EXPECT_NEAR(*parse_seconds("50µs"), 50e-6, 1e-18);
  EXPECT_NEAR(*parse_seconds("500", 1e-3), 0.5, 1e-15);
}

}  // namespace
}  // namespace weir::loadgen
