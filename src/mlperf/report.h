// SPDX-License-Identifier: Apache-2.0
// LoadGen's verdict and figures as a short table, as JSON, and as the figures of a run record. Every number is LoadGen's own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "loadgen/report_record.h"
#include "mlperf/loadgen_run.h"
#include "mlperf/logs.h"

namespace weir::mlperf {

std::string to_text(const DetailLog& log, Scenario scenario, bool token_latencies);
// "validity", what it rests on, and all of LoadGen's result_* and early_stopping_* values by their own names.
json::Object to_json(const DetailLog& log);
// Queries per second that LoadGen's search for the peak ended at, when the log is one of such a search and it found one.
std::optional<double> peak_of(const DetailLog& log);
std::vector<loadgen::Figure> figures_of(const DetailLog& log, Scenario scenario, bool token_latencies);

}  // namespace weir::mlperf
