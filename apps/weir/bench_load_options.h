// SPDX-License-Identifier: Apache-2.0
// The options that describe a load: the same for `weir bench load` and `weir bench compare`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bench_progress.h"
#include "loadgen/scenario.h"

namespace CLI {
class App;
}

namespace weir::cli {

struct LoadOptions {
  std::string rate, duration, trace, endpoint = "chat", model, api_key, ca_file;
  std::vector<std::string> headers;
  std::int64_t requests = 0, concurrency = 0;
  double trace_speed = 1;
  std::string distribution;  // Perf Analyzer's name for the arrivals of a plain rate
  std::string prompts = "synthetic", prompt_file, tokenizer, input_tokens = "128", output_tokens = "64", turns = "1", think = "0", extra;
  double shared_prefix = 0;
  std::int64_t prefix_groups = 1, most_prompts = 10000;
  bool no_stream = false, ignore_eos = false, hash_answers = false, timings = false, insecure = false;
  std::string slo, timeout = "10m", drain = "10m", max_late = "1ms";
  std::int64_t max_concurrency = 0, warm_connections = 64;
  int threads = 1;
  double interval_ms = 5000, stability_percent = 10, percentile = -1;
  std::int64_t max_trials = 10;
  std::uint64_t seed = 1;
  ProgressOptions progress;

  void add_to(CLI::App& app);
  Result<loadgen::LoadSpec> spec(const std::string& url) const;
};

}  // namespace weir::cli
