// SPDX-License-Identifier: Apache-2.0
// One line of a metrics text, taken apart. For exposition.cc and its tests.
#pragma once

#include <optional>

#include "loadgen/exposition.h"

namespace weir::loadgen {

struct SampleLine {
  std::string_view name;
  MetricLabels labels;
  double value = 0;
};

// "name{label="value"} 1.5 1700000000000 # {trace_id="x"} 0.3"; an error says what is wrong, without the line's number.
Result<SampleLine> parse_sample_line(std::string_view line, const ExpositionLimits& limits);

// A number as both formats write it: decimal, NaN, Inf, +Inf, -Inf in any case.
std::optional<double> parse_metric_value(std::string_view text);

bool is_metric_name(std::string_view name);

}  // namespace weir::loadgen
