// SPDX-License-Identifier: Apache-2.0
// What a metrics endpoint answers: Prometheus' text format 0.0.4, and what OpenMetrics 1.0 adds to it (# EOF, # UNIT, exemplars, _created,
// further types). Strict, so that a cut or foreign text is an error and never half a reading; every size is bounded, for it comes from
// outside.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace weir::loadgen {

enum class MetricKind { kUntyped, kGauge, kCounter, kHistogram, kSummary };
std::string_view kind_name(MetricKind kind);  // "gauge", "counter", …

using MetricLabels = std::vector<std::pair<std::string, std::string>>;  // sorted by name

struct HistogramBucket {
  double at_most = 0;  // the last one's is infinite
  double count = 0;    // of all observations up to here
};

// A gauge or counter with its value, or a histogram or summary with all its parts together.
struct MetricReading {
  std::string name;  // as in the text; of a histogram or summary without _bucket, _sum and _count
  MetricLabels labels;
  MetricKind kind = MetricKind::kUntyped;
  double value = 0;                      // of a histogram or summary: the number of observations
  double sum = 0;                        // of a histogram's or summary's observations
  std::vector<HistogramBucket> buckets;  // by rising bound
};

struct ExpositionLimits {
  std::size_t max_bytes = 8u << 20, max_line = 64u << 10, max_series = 50'000, max_kept = 4096, max_labels = 64, max_name = 256,
              max_label_value = 1024, max_buckets = 512;
};

struct Exposition {
  std::vector<MetricReading> readings;  // in the order of their first lines
  std::size_t samples = 0;              // lines with a value, kept or not
  std::size_t left_out = 0;             // series that were wanted, beyond max_kept
};

// `wanted` picks series by name (a histogram's without its suffix); all lines are checked, whether wanted or not. The times that a text may
// give its samples are checked and left aside. Times of creation (_created) are no readings.
Result<Exposition> parse_exposition(std::string_view text, const std::function<bool(std::string_view)>& wanted,
                                    const ExpositionLimits& limits = {});

// "a=b,c=d", for people.
std::string labels_text(const MetricLabels& labels);

}  // namespace weir::loadgen
