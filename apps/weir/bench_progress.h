// SPDX-License-Identifier: Apache-2.0
// A run with its progress on standard error, and Ctrl-C to end it early: the same for every verb that puts load on a server.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "loadgen/scenario.h"

namespace CLI {
class App;
}

namespace weir::cli {

struct ProgressOptions {
  std::string mode = "auto";  // auto: one line that changes, if standard error is a terminal; lines: one every few seconds; none
  bool quiet = false;
  void add_to(CLI::App& app);
};

struct Expected {
  std::int64_t requests = 0;  // 0: not known
  double seconds = 0;         // likewise
};

Result<loadgen::Measured> measure_with_progress(const loadgen::Scenario& scenario, const loadgen::Scenario::Variation& variation,
                                                const ProgressOptions& options);
Result<loadgen::Measured> measure_with_progress(const std::function<Result<loadgen::Measured>(loadgen::Progress&)>& measure,
                                                const Expected& expected, const ProgressOptions& options);

}  // namespace weir::cli
