// SPDX-License-Identifier: Apache-2.0
// Perf Analyzer's columns of GPUs (--collect-metrics with --verbose-csv), from what was observed during a run.
#pragma once

#include <span>
#include <string>

#include "loadgen/report.h"

namespace weir::loadgen {

// "UUID:value;" for each GPU that a run's "observations" hold, by the server's word or else this machine's.
struct GpuColumns {
  std::string mean_use, mean_watts, most_memory, total_memory;
  bool any() const { return !(mean_use + mean_watts + most_memory + total_memory).empty(); }
};
GpuColumns gpu_columns(const json::Object& seen);

// As perf_analyzer_csv() of report.h, with these columns; `gpus` are of the same runs.
std::string perf_analyzer_csv(std::span<const std::pair<RunLabel, Summary>> runs, bool verbose, std::span<const GpuColumns> gpus);

}  // namespace weir::loadgen
