// SPDX-License-Identifier: Apache-2.0
// What plots need of a run, small enough for its JSON: each latency's quantiles from the least to the most, and the run in windows of time.
#pragma once

#include <span>
#include <vector>

#include "base/json.h"
#include "loadgen/records.h"

namespace weir::loadgen {

// In per cent: 0, 1, … 99, then 99.1 … 99.9, 99.95, 99.99 and 100.
std::span<const double> curve_quantiles();

// {"quantiles": […], "ttft_s": […], "itl_s": …, "tpot_s": …, "e2e_s": …}; a latency that nobody measured is left out.
json::Object curves_json(const RunResult& result);

// {"window_s": 0.5, "scheduled_per_s": […], "sent_per_s", "completed_per_s", "failed_per_s", "output_tokens_per_s", "in_flight": mean of
// each window, "ttft_p50_s", "ttft_p99_s", "e2e_p50_s", "e2e_p99_s": of the requests due in the window, null where there are none}.
json::Object timeline_json(const RunResult& result);

// The least of 1, 2 or 5 times a power of ten (1 ms at least) of which `length_s` holds at most `most`.
double window_length(double length_s, std::size_t most);

double six_digits(double value);  // rounded: JSON then writes it short

}  // namespace weir::loadgen
