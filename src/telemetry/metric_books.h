// SPDX-License-Identifier: Apache-2.0
// What has been recorded so far, by model and by route, and how it becomes samples of the quantities in the metric table. Inside of
// Metrics only.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/instruments.h"
#include "telemetry/metric_table.h"
#include "telemetry/metrics.h"

namespace weir::telemetry {

// Why answers end, in our words; the last one is for words that are not known here.
inline constexpr std::array<std::string_view, 6> kReasons = {"stop", "length", "tool_calls", "cancelled", "error", "other"};
inline constexpr std::array<std::string_view, 3> kOutcomes = {"ok", "cancelled", "failed"};

struct ModelBooks {
  std::array<Histogram, kModelHistograms> histograms;  // by Quantity
  std::array<Counter, kReasons.size()> finished = {};
  std::array<Counter, kOutcomes.size()> outcomes = {};
  Counter cancelled{0}, loads{0}, unloads{0}, drafts{0};

  Histogram& operator[](Quantity quantity) { return histograms[static_cast<std::size_t>(quantity)]; }
};
void prepare_books(ModelBooks& books);

struct RouteBooks {
  Histogram time;
};

// One line of the exposition, before it has a name: the values of its labels and its value, or the histogram.
struct Sample {
  std::vector<std::string> labels = {};
  double value = 0;
  std::optional<HistogramReading> histogram = {};
};

class Samples {
 public:
  void put(Quantity quantity, std::vector<std::string> labels, double value) {
    of_[static_cast<std::size_t>(quantity)].push_back({std::move(labels), value, {}});
  }
  void put(Quantity quantity, std::vector<std::string> labels, HistogramReading reading) {
    of_[static_cast<std::size_t>(quantity)].push_back({std::move(labels), 0, std::move(reading)});
  }
  const std::vector<Sample>& of(Quantity quantity) const { return of_[static_cast<std::size_t>(quantity)]; }

 private:
  std::array<std::vector<Sample>, kQuantities> of_;
};

// The text of all rows that have samples.
std::string exposition(const Samples& samples);

struct ProcessFigures {
  double resident_bytes = 0, virtual_bytes = 0, cpu_seconds = 0, start_unix_s = 0, open_fds = 0, max_fds = 0;
};
ProcessFigures process_figures();

}  // namespace weir::telemetry
