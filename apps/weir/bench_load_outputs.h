// SPDX-License-Identifier: Apache-2.0
// Everything that `weir bench load` writes to files: JSON, CSV, samples, the HTML report, a run record.
#pragma once

#include <string>
#include <vector>

#include "bench_record.h"
#include "loadgen/report_run.h"

namespace CLI {
class App;
}

namespace weir::cli {

struct LoadOutputs {
  std::string json, csv, records, samples, html, perf_analyzer;
  bool verbose_csv = false;
  RecordOptions record;

  void add_to(CLI::App& app);
  Status check() const;  // what can be refused before anything was measured
  // `more` describes a sweep or a search; empty for a single run.
  Status write(const std::vector<loadgen::Measured>& runs, const loadgen::Judging& judging, const json::Object& more) const;
};

}  // namespace weir::cli
