// SPDX-License-Identifier: Apache-2.0
// Is B slower than A? Both are measured in turn, round by round, in an order that changes by chance, with the same requests at the same
// moments in a round; what is judged is the ratio within each round, so that a machine that drifts does not decide.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loadgen/metrics.h"

namespace weir::loadgen {

// What is compared. Higher may be better (rates) or worse (times).
struct ComparedMetric {
  std::string name;  // "ttft_p50", "tpot_mean", "e2e_p99", "output_tokens_per_s", "request_rate", "goodput"
  bool higher_is_better = false;
};
Result<ComparedMetric> parse_metric(std::string_view name);
double value_of(const ComparedMetric& metric, const Summary& summary);  // 0: not known

struct PairedRatio {
  ComparedMetric metric;
  std::size_t rounds = 0;
  double a = 0, b = 0;      // geometric means
  double ratio = 1;         // B / A, geometric mean of the rounds'
  Interval interval{1, 1};  // of it, Student's t on the logarithms
  enum class Verdict { kSame, kBetter, kWorse, kRegression, kUnknown } verdict = Verdict::kUnknown;
};

// `threshold` 0.05: worse by more than 5 % is a regression, if the interval excludes no change at all.
PairedRatio paired_ratio(const ComparedMetric& metric, std::span<const double> a, std::span<const double> b, double threshold,
                         double confidence);
std::string to_text(const PairedRatio& ratio, double threshold);
json::Object to_json(const PairedRatio& ratio);

double student_quantile(double p, double degrees);  // of Student's t

// Per round, which goes first: half of the rounds each, in an order that the seed picks.
std::vector<bool> a_first_order(std::size_t rounds, std::uint64_t seed);

}  // namespace weir::loadgen
