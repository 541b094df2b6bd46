// SPDX-License-Identifier: Apache-2.0
// The verbs below `weir bench`.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace weir::cli {

void add_bench_compare(CLI::App& bench, int& exit_status);
void add_bench_engine(CLI::App& bench, int& exit_status);
void add_bench_kernels(CLI::App& bench, int& exit_status);
void add_bench_load(CLI::App& bench, int& exit_status);
void add_bench_machine(CLI::App& bench, int& exit_status);
void add_bench_mlperf(CLI::App& bench, int& exit_status);
void add_bench_null_server(CLI::App& bench, int& exit_status);
void add_bench_report(CLI::App& bench, int& exit_status);
void add_bench_rerun(CLI::App& bench, int& exit_status);

// Writes an object and a line break to a file, replacing it at once, or for "-" to standard output.
Status write_json(const std::string& target, const json::Object& object);

}  // namespace weir::cli
