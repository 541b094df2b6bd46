// SPDX-License-Identifier: Apache-2.0
// What MLPerf Inference asks of each language benchmark, as data. The bounds that LoadGen itself enforces are in its own mlperf.conf (a
// test compares); the rest (data sets, accuracy, lengths, what is forbidden) is from the rules and the submission checker of 2026-07.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"

namespace weir::mlperf {

// In milliseconds, at the 99th percentile; 0: none.
struct TokenBounds {
  int ttft_ms = 0, tpot_ms = 0;
};

struct Benchmark {
  std::string_view key;  // as LoadGen knows it
  std::string_view dataset;
  std::int64_t samples;       // of the performance set
  TokenBounds server;         // also without them tokens may be counted
  TokenBounds interactive;    // none: there is no such variant
  int server_latency_ms;      // of a whole answer, where tokens are not looked at
  bool token_latencies;       // TTFT and TPOT have to be reported
  std::int64_t max_tokens;    // of an answer; 0: the rules name none
  std::int64_t min_tokens;    // LoadGen needs two to tell a time per token
  std::string_view accuracy;  // what 99 % of the reference means
  std::string_view compliance;
  std::string_view speculation;  // where guessing tokens is allowed
};

inline constexpr std::string_view kBenchmarkSource =
    "mlperf.conf of LoadGen 6.0.17; MLPerf Inference rules and submission checker as of July 2026";

std::span<const Benchmark> benchmarks();
const Benchmark* find_benchmark(std::string_view key);

std::string benchmark_table();
json::Array benchmarks_json();

}  // namespace weir::mlperf
