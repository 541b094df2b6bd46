// SPDX-License-Identifier: Apache-2.0
// Figures of series over a window, from readings whose moments and values are made by hand.
#include "loadgen/observed_series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "loadgen/observed_names.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

const TimePoint kZero{1000s};

MetricReading one(MetricKind kind, double value, std::string name = "x") {
  return {.name = std::move(name), .labels = {{"model", "m"}}, .kind = kind, .value = value, .buckets = {}};
}

MetricReading histogram(std::vector<double> counts, double sum) {
  MetricReading out{.name = "h", .labels = {}, .kind = MetricKind::kHistogram, .value = counts.back(), .sum = sum, .buckets = {}};
  const double bounds[] = {1, 2, 4, HUGE_VAL};
  for (std::size_t i = 0; i < counts.size(); ++i) out.buckets.push_back({bounds[i], counts[i]});
  return out;
}

SeriesFigures only(const SeriesStore& store, Duration length) {
  const auto figures = store.figures(kZero, kZero + length);
  EXPECT_EQ(figures.size(), 1u);
  return figures.at(0);
}

TEST(ObservedSeries, AGaugeIsToldOverTheWindowAlone) {
  SeriesStore store;
  for (const auto& [at, value] : {std::pair{-1, 100.0}, {1, 2.0}, {2, 8.0}, {3, 5.0}, {5, 1000.0}})
    store.add(kZero + at * 1s, {one(MetricKind::kGauge, value)});
  const SeriesFigures f = only(store, 4s);
  EXPECT_EQ(f.samples, 3u);
  EXPECT_DOUBLE_EQ(*f.first, 2);
  EXPECT_DOUBLE_EQ(*f.min, 2);
  EXPECT_DOUBLE_EQ(*f.mean, 5);
  EXPECT_DOUBLE_EQ(*f.max, 8);
  EXPECT_DOUBLE_EQ(*f.last, 5);
  EXPECT_FALSE(f.increase);
  ASSERT_EQ(f.points.size(), 5u);
  EXPECT_EQ(f.points[0], (std::pair{-1.0, 100.0}));
  const SeriesFigures outside = only(store, 500ms);  // a run between two readings: nothing is known of it
  EXPECT_EQ(outside.samples, 0u);
  EXPECT_FALSE(outside.mean || outside.first || outside.max);
}

TEST(ObservedSeries, ACounterGrowsFromBeforeToAfter) {
  SeriesStore store;
  for (const auto& [at, value] : {std::pair{-1, 100.0}, {1, 130.0}, {4, 150.0}})
    store.add(kZero + at * 1s, {one(MetricKind::kCounter, value)});
  const SeriesFigures f = only(store, 3s);
  EXPECT_DOUBLE_EQ(*f.increase, 50);
  EXPECT_DOUBLE_EQ(*f.rate_per_s, 10);
  EXPECT_DOUBLE_EQ(*f.first, 100);
  EXPECT_DOUBLE_EQ(*f.last, 150);
  EXPECT_EQ(f.resets, 0);
}

TEST(ObservedSeries, ACounterThatFallsBeganAnewAndOneThatComesLateBeganAtZero) {
  SeriesStore store;
  for (const auto& [at, value] : {std::pair{0, 100.0}, {1, 110.0}, {2, 4.0}, {4, 6.0}}) {
    std::vector<MetricReading> readings{one(MetricKind::kCounter, value)};
    if (at >= 2) readings.push_back(one(MetricKind::kCounter, at, "late"));
    store.add(kZero + at * 1s, readings);
  }
  const auto figures = store.figures(kZero, kZero + 4s);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "late");
  EXPECT_DOUBLE_EQ(*figures[0].increase, 4);
  EXPECT_DOUBLE_EQ(*figures[0].rate_per_s, 1);
  EXPECT_EQ(figures[0].resets, 0);
  EXPECT_DOUBLE_EQ(*figures[1].increase, 16);
  EXPECT_EQ(figures[1].resets, 1);
}

TEST(ObservedSeries, AHistogramIsTheDifferenceOfItsEnds) {
  SeriesStore store;
  store.add(kZero, {histogram({5, 5, 5, 10}, 700)});         // what was before does not count
  store.add(kZero + 2s, {histogram({7, 11, 13, 18}, 715)});  // 2 up to 1, 4 up to 2, 2 up to 4
  const SeriesFigures f = only(store, 2s);
  EXPECT_DOUBLE_EQ(*f.increase, 8);
  EXPECT_DOUBLE_EQ(*f.rate_per_s, 4);
  EXPECT_DOUBLE_EQ(*f.mean, 15.0 / 8);
  ASSERT_EQ(f.quantiles.size(), 3u);
  EXPECT_DOUBLE_EQ(f.quantiles[0].second, 1.5);          // the fourth of eight: half through the second bucket
  EXPECT_DOUBLE_EQ(f.quantiles[1].second, 2 + 2 * 0.6);  // 7.2 of 8
  EXPECT_TRUE(f.points.empty());
  const json::Object out = to_json(f);
  EXPECT_DOUBLE_EQ(out.at("estimated_quantiles").at("p50").as_double(), 1.5);
  EXPECT_DOUBLE_EQ(out.at("count").as_double(), 8);
}

TEST(ObservedSeries, AHistogramThatBeganAnewIsWhatCameSince) {
  SeriesStore store;
  store.add(kZero, {histogram({50, 50, 50, 50}, 50)});
  store.add(kZero + 1s, {histogram({0, 0, 3, 3}, 9)});
  const SeriesFigures f = only(store, 1s);
  EXPECT_EQ(f.resets, 1);
  EXPECT_DOUBLE_EQ(*f.increase, 3);
  EXPECT_DOUBLE_EQ(*f.mean, 3);
  EXPECT_DOUBLE_EQ(f.quantiles.at(0).second, 3);
}

TEST(ObservedSeries, QuantilesOfBuckets) {
  EXPECT_FALSE(bucket_quantile({}, 0.5));
  EXPECT_FALSE(bucket_quantile({{1, 0}, {HUGE_VAL, 0}}, 0.5));
  EXPECT_DOUBLE_EQ(*bucket_quantile({{1, 10}, {HUGE_VAL, 10}}, 0.5), 0.5);  // the first begins at zero
  EXPECT_DOUBLE_EQ(*bucket_quantile({{1, 1}, {HUGE_VAL, 10}}, 0.99), 1);    // beyond the last bound nothing is known
  EXPECT_DOUBLE_EQ(*bucket_quantile({{-2, 4}, {0, 4}, {HUGE_VAL, 4}}, 1), -2);
}

TEST(ObservedSeries, ALongRunKeepsItsFiguresInFewPoints) {
  SeriesStore store;
  const int readings = 100'000;
  store.add(kZero - 1s, {one(MetricKind::kCounter, 0, "c"), one(MetricKind::kGauge, 7, "g")});
  for (int i = 0; i < readings; ++i)
    store.add(kZero + i * 1s, {one(MetricKind::kCounter, i, "c"), one(MetricKind::kGauge, i == 50'000 ? 900 : i % 2, "g")});
  const auto figures = store.figures(kZero, kZero + readings * 1s);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_DOUBLE_EQ(*figures[0].increase, readings - 1);
  EXPECT_DOUBLE_EQ(*figures[0].first, 0);
  EXPECT_DOUBLE_EQ(*figures[1].max, 900);
  EXPECT_DOUBLE_EQ(*figures[1].min, 0);
  EXPECT_EQ(figures[1].samples, static_cast<std::size_t>(readings));
  EXPECT_NEAR(*figures[1].mean, 0.5 + 900.0 / readings, 1e-9);
  for (const SeriesFigures& f : figures) {
    EXPECT_LE(f.points.size(), SeriesStore::kMostTold);
    EXPECT_GE(f.points.size(), SeriesStore::kMostTold / 4);
  }
  EXPECT_DOUBLE_EQ(figures[0].points.back().second, readings - 1);
}

TEST(ObservedSeries, TheNumberOfSeriesIsBounded) {
  SeriesStore store;
  std::vector<MetricReading> many;
  for (std::size_t i = 0; i < SeriesStore::kMostSeries + 10; ++i) many.push_back(one(MetricKind::kGauge, 1, fmt::format("g{}", i)));
  store.add(kZero, many);
  store.add(kZero + 1s, many);
  EXPECT_EQ(store.size(), SeriesStore::kMostSeries);
  EXPECT_EQ(store.left_out(), 10u);
}

TEST(ObservedSeries, WhatIsNoNumberIsNullInTheJson) {
  SeriesStore store;
  for (const double value : {1.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, 3.0})
    store.add(kZero + 1s * static_cast<int>(store.size()), {one(MetricKind::kGauge, value)});
  const std::string text = boost::json::serialize(to_json(store.figures(kZero, kZero + 9s).at(0)));
  EXPECT_NE(text.find("null"), std::string::npos) << text;
  EXPECT_TRUE(json::parse(text, "it")) << text;
  EXPECT_DOUBLE_EQ(*store.figures(kZero, kZero + 9s).at(0).mean, 2);
}

TEST(ObservedNames, KnownNamesHaveMeaningsAndFiltersMatchBeginnings) {
  EXPECT_EQ(meaning_of("vllm:num_requests_waiting").word, "waiting");
  EXPECT_EQ(meaning_of("sglang:token_usage").unit, "ratio");
  EXPECT_EQ(meaning_of("vllm:num_requests_waiting_more").word, "");
  SeriesStore store;
  store.add(kZero, {one(MetricKind::kGauge, 50, "DCGM_FI_DEV_GPU_UTIL")});
  EXPECT_DOUBLE_EQ(*only(store, 1s).mean, 0.5);  // it tells per cent
  const auto known = SeriesFilter::make("");
  EXPECT_TRUE((*known)("weir_requests_running"));
  EXPECT_FALSE((*known)("weir_log_lines_dropped_total"));
  const auto pattern = SeriesFilter::make("vllm:|weir_(kv|log)");
  EXPECT_TRUE((*pattern)("vllm:anything"));
  EXPECT_TRUE((*pattern)("weir_log_lines_dropped_total"));
  EXPECT_FALSE((*pattern)("my_vllm:anything"));
  EXPECT_FALSE(SeriesFilter::make("(("));
  EXPECT_FALSE(SeriesFilter::make(std::string(2000, 'a')));
}

}  // namespace
}  // namespace weir::loadgen
