// SPDX-License-Identifier: Apache-2.0
// A summary for people (a table), for programs (JSON with a versioned schema, CSV) and for Perf Analyzer's users (its columns).
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "loadgen/metrics.h"

namespace weir::loadgen {

inline constexpr std::string_view kSchema = "weir.bench.load/1";

// What was done, for the report's head. Free of meaning here.
struct RunLabel {
  std::string target, load, prompts, model;
  std::uint64_t seed = 0;
  double rate = 0;               // requests/s asked for; 0 in a closed loop
  std::int64_t concurrency = 0;  // users, or the cap
};

std::string to_text(const Summary& summary, const RunLabel& label, const Slo& slo);
std::string to_line(const Summary& summary, const RunLabel& label);  // one row of a sweep's table
std::string line_header();
json::Object to_json(const Summary& summary, const RunLabel& label, const Slo& slo);
std::string to_csv(std::span<const std::pair<RunLabel, Summary>> runs);                           // a row per run
std::string perf_analyzer_csv(std::span<const std::pair<RunLabel, Summary>> runs, bool verbose);  // times in µs, by rising throughput
std::string records_csv(const RunResult& result);                                                 // a row per request

}  // namespace weir::loadgen
