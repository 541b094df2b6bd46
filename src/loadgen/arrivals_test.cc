// SPDX-License-Identifier: Apache-2.0
// Each process is tested against what it declares: its gaps' distribution where they have one, else the moments mapped through the rate.
#include "loadgen/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "loadgen/statistics.h"

namespace weir::loadgen {
namespace {

std::vector<Duration> make(const char* text, std::int64_t requests, std::uint64_t seed = 11) {
  auto process = ArrivalProcess::parse(text);
  EXPECT_TRUE(process) << text;
  auto moments = schedule(*process, {.requests = requests, .length = {}}, seed);
  EXPECT_TRUE(moments) << text;
  return *moments;
}

std::vector<Duration> make_for(const char* text, Duration length, std::uint64_t seed = 11) {
  auto moments = schedule(*ArrivalProcess::parse(text), {.requests = {}, .length = length}, seed);
  EXPECT_TRUE(moments) << text;
  return *moments;
}

std::vector<double> gaps(const std::vector<Duration>& moments) {
  std::vector<double> out{to_seconds(moments.front())};
  for (std::size_t i = 1; i < moments.size(); ++i) out.push_back(to_seconds(moments[i] - moments[i - 1]));
  return out;
}

TEST(Arrivals, ConstantIsExact) {
  const auto moments = make("constant:8", 5);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(moments[i], std::chrono::milliseconds(125) * static_cast<int>(i));
  EXPECT_EQ(make_for("constant:10", std::chrono::seconds(1)).size(), 10u);
  // No drift: the last of many is where it belongs to the nanosecond.
  EXPECT_EQ(make("constant:3", 3'000'001).back(), std::chrono::seconds(1'000'000));
}

TEST(Arrivals, PoissonGapsPassKolmogorovSmirnovAtTheDeclaredRate) {
  for (const double rate : {0.5, 20.0, 5000.0}) {
    const auto result =
        kolmogorov_smirnov(gaps(make(fmt::format("poisson:{}", rate).c_str(), 20000)), [&](double x) { return 1 - std::exp(-rate * x); });
    EXPECT_GT(result.p_value, 0.01) << rate;
    // The test can fail: five per cent off the declared rate is found.
    const auto wrong = kolmogorov_smirnov(gaps(make(fmt::format("poisson:{}", rate).c_str(), 20000)),
                                          [&](double x) { return 1 - std::exp(-1.05 * rate * x); });
    EXPECT_LT(wrong.p_value, 0.01) << rate;
  }
}

TEST(Arrivals, GammaGapsFollowTheirBurstiness) {
  for (const double shape : {0.25, 0.5, 1.0, 4.0}) {
    const auto result = kolmogorov_smirnov(gaps(make(fmt::format("gamma:50,{}", shape).c_str(), 20000)),
                                           [&](double x) { return incomplete_gamma(shape, x * 50 * shape); });
    EXPECT_GT(result.p_value, 0.01) << shape;
  }
}

TEST(Arrivals, BurstsComeTogetherAtTheAverageRate) {
  const auto moments = make("bursts:20,8", 24);
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(moments[i], std::chrono::milliseconds(400) * static_cast<int>(i / 8));
}

TEST(Arrivals, RatesThatChangeAreFollowed) {
  const Duration length = std::chrono::seconds(400);
  for (const char* text : {"ramp:5,50", "ramp:50,5", "expramp:2,80", "stairs:5,20,80", "diurnal:25,0.8,100s", "diurnal:25,1,130s"}) {
    const auto process = *ArrivalProcess::parse(text);
    const auto moments = make_for(text, length);
    // The share of the expected arrivals that are due until a moment, from the rate itself by a fine sum.
    constexpr int kSteps = 40000;
    std::vector<double> until{0};
    for (int i = 0; i < kSteps; ++i) until.push_back(until.back() + process.rate_at((i + 0.5) * 400.0 / kSteps, 400) * 400.0 / kSteps);
    std::vector<double> at;
    for (const Duration moment : moments) at.push_back(to_seconds(moment));
    const auto result = kolmogorov_smirnov(at, [&](double x) { return until[static_cast<std::size_t>(x / 400 * kSteps)] / until.back(); });
    EXPECT_GT(result.p_value, 0.01) << text;
    EXPECT_NEAR(static_cast<double>(moments.size()), until.back(), 4 * std::sqrt(until.back())) << text;
  }
}

TEST(Arrivals, StairsAndRampsFitTheirLengthToTheNumberOfRequests) {
  const auto moments = make("stairs:10,30", 4000);  // about 200 s
  EXPECT_NEAR(to_seconds(moments.back()), 200, 12);
  EXPECT_LE(moments.size(), 4000u);
}

TEST(Arrivals, SameSeedSameMomentsOtherSeedOthers) {
  EXPECT_EQ(make("poisson:10", 100, 1), make("poisson:10", 100, 1));
  EXPECT_NE(make("poisson:10", 100, 1), make("poisson:10", 100, 2));
}

TEST(Arrivals, ScaledToAnotherRate) {
  EXPECT_DOUBLE_EQ(ArrivalProcess::parse("stairs:1,3")->at_rate(8).rates[1], 12);
  const auto ramp = ArrivalProcess::parse("expramp:2,80")->at_rate(10);
  EXPECT_NEAR(ramp.mean_rate(), 10, 1e-12);
  EXPECT_EQ(ArrivalProcess::parse("gamma:20,0.5")->description(), "gamma:20,0.5");
}

TEST(Arrivals, RefuseNonsense) {
  for (const char* bad :
       {"", "0", "-3", "poisson:", "gamma:5", "bursts:5,0", "ramp:5", "diurnal:5,2,1h", "diurnal:5,0.5,0s", "tide:5", "poisson:1e9", "nan"})
    EXPECT_FALSE(ArrivalProcess::parse(bad)) << bad;
  EXPECT_FALSE(schedule({}, {}, 1));
  EXPECT_FALSE(schedule(*ArrivalProcess::parse("poisson:1000000"), {.requests = {}, .length = std::chrono::hours(10)}, 1));
  EXPECT_FALSE(schedule({}, {.requests = 0, .length = {}}, 1));
}

}  // namespace
}  // namespace weir::loadgen
