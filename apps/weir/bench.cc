// SPDX-License-Identifier: Apache-2.0
// weir bench: how fast is it, and how much of the machine does that use?
#include "bench.h"

#include <CLI/CLI.hpp>

#include "verbs.h"

namespace weir::cli {

void add_bench(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("bench", "Measure speed, beside what the machine could do at most");
  verb->require_subcommand(1);
  add_bench_machine(*verb, exit_status);
  add_bench_kernels(*verb, exit_status);
  add_bench_engine(*verb, exit_status);
  add_bench_load(*verb, exit_status);
  add_bench_compare(*verb, exit_status);
  add_bench_mlperf(*verb, exit_status);
  add_bench_null_server(*verb, exit_status);
  add_bench_report(*verb, exit_status);
  add_bench_rerun(*verb, exit_status);
}

}  // namespace weir::cli
