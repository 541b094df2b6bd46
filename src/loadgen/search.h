// SPDX-License-Identifier: Apache-2.0
// Levels of load: a range to sweep, and the highest that still holds an objective.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::loadgen {

// "start:end:step" as Perf Analyzer writes it (end and step may be left out), "a,b,c", or "start:end:xF" for steps by a factor.
Result<std::vector<double>> parse_levels(std::string_view text);

struct Range {
  double low = 1, high = 1, step = 1;
};
Result<Range> parse_range(std::string_view text);

struct SearchStep {
  double level = 0;
  bool passed = false;
};

struct SearchResult {
  std::optional<double> highest;  // that passed; nothing: not even the lowest did
  bool reached_end = false;       // the highest of the range passes too
  std::vector<SearchStep> steps;
};

// Bisection between low and high, until both ends are `resolution` apart. An error of `passes` ends it.
Result<SearchResult> find_highest(double low, double high, double resolution, const std::function<Result<bool>(double)>& passes);

}  // namespace weir::loadgen
