// SPDX-License-Identifier: Apache-2.0
// The one user.conf of a run, out of what the user's file says and what options say. LoadGen reads a single such file, so both go into one,
// which lies beside the logs. Exact keys beat wildcards and a later line beats an earlier one: options win.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "mlperf/benchmarks.h"
#include "mlperf/loadgen_run.h"

namespace weir::mlperf {

inline constexpr std::string_view kOwnKey = "weir";  // the key of runs under no benchmark's rules

struct ConfOptions {
  Scenario scenario = Scenario::kSingleStream;
  bool interactive = false;
  std::string benchmark = {};  // empty: none
  std::optional<double> target_qps = {}, target_latency_ms = {}, percentile = {};
  std::optional<std::int64_t> min_duration_ms = {}, max_duration_ms = {}, min_query_count = {}, max_query_count = {};
  std::optional<std::int64_t> samples_per_query = {}, ttft_ms = {}, tpot_ms = {};
};

// "llama2-70b", "llama2-70b-interactive", "weir", …
std::string model_key(const ConfOptions& options);

// kInvalidArgument for an option that the scenario has no use for.
Result<std::string> make_user_conf(const ConfOptions& options, std::string_view users_text);

// Whether a text sets the key for this run, exactly or by wildcard.
bool conf_sets(std::string_view text, const std::string& model, Scenario scenario, std::string_view key);

}  // namespace weir::mlperf
