// SPDX-License-Identifier: Apache-2.0
// Series over the time of a run, from one source: readings go in with their moments, figures over the measured window come out. Bounded in
// series and in points: where a run is long, neighbouring points become one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "loadgen/exposition.h"

namespace weir::loadgen {

// Of one series. What is not known is empty.
struct SeriesFigures {
  std::string name;
  MetricLabels labels;
  MetricKind kind = MetricKind::kUntyped;
  std::string_view meaning, unit;  // see observed_names.h
  // Gauges: over the points within the window. Counters: first and last are those of the increase.
  std::size_t samples = 0;  // points within the window
  std::optional<double> first, min, mean, max, last;
  // Counters and histograms: from the last reading before the window to the first after it, where there are such.
  std::optional<double> increase, rate_per_s;     // of a histogram: of its observations
  int resets = 0;                                 // the value fell: the server began anew
  std::vector<std::pair<int, double>> quantiles;  // of a histogram: estimates by its buckets, in per cent; `mean` is exact
  std::vector<std::pair<double, double>> points;  // seconds from the window's begin, value
};

// The q-quantile (0 to 1) of observations in buckets, even within each as Prometheus takes them to be; nothing without observations.
std::optional<double> bucket_quantile(const std::vector<HistogramBucket>& buckets, double q);

class SeriesStore {
 public:
  // All readings of one moment; moments rise.
  void add(TimePoint at, const std::vector<MetricReading>& readings);
  std::vector<SeriesFigures> figures(TimePoint from, TimePoint to) const;
  std::size_t size() const { return series_.size(); }
  std::size_t left_out() const { return left_out_.size(); }

  static constexpr std::size_t kMostSeries = 512, kMostPoints = 2048, kMostTold = 500;

 private:
  struct Point {
    TimePoint at{};
    double last = 0, min = 0, max = 0, sum = 0;
    std::size_t count = 0;  // readings that it stands for
  };
  struct Track {
    MetricReading first, latest;  // of a histogram: all parts
    TimePoint begun{}, latest_at{};
    double increase = 0, sum_increase = 0;
    int resets = 0;
    std::vector<Point> points;
    std::size_t stride = 1;  // readings a point
  };
  void add_to(Track& track, TimePoint at, const MetricReading& reading);
  static SeriesFigures figures_of(const Track& track, TimePoint from, TimePoint to);

  std::map<std::string, Track> series_;
  std::set<std::string> left_out_;
  std::optional<TimePoint> first_at_;
};

json::Object to_json(const SeriesFigures& figures);

}  // namespace weir::loadgen
