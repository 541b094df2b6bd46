// SPDX-License-Identifier: Apache-2.0
// The verbs of the command line. Each adds its subcommand and options to the application; when it is chosen its callback
// runs and leaves the exit status: 0 done, 1 the work failed or a check does not hold, 2 wrong usage, 130 interrupted.
#pragma once

#include "base/result.h"

namespace CLI {
class App;
}

namespace weir::cli {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

void add_run(CLI::App& app, int& exit_status);
void add_serve(CLI::App& app, int& exit_status);
void add_tokenize(CLI::App& app, int& exit_status);
void add_eval(CLI::App& app, int& exit_status);
void add_pull(CLI::App& app, int& exit_status);
void add_list(CLI::App& app, int& exit_status);
void add_show(CLI::App& app, int& exit_status);
void add_rm(CLI::App& app, int& exit_status);
void add_bench(CLI::App& app, int& exit_status);
void add_embed(CLI::App& app, int& exit_status);
void add_rerank(CLI::App& app, int& exit_status);

// Prints the error to standard error and gives the exit status that fits it.
int report_error(const Error& error);

// Ctrl-C and SIGTERM set a flag instead of ending the process; a second one ends it. Verbs that stop cleanly poll the flag.
void catch_interrupts();
bool interrupted();
void clear_interrupt();

}  // namespace weir::cli
