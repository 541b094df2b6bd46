// SPDX-License-Identifier: Apache-2.0
// Errors and interrupts, the same for all verbs.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"
#include "verbs.h"

namespace weir::cli {
namespace {

volatile sig_atomic_t g_interrupts = 0;

void on_signal(int) {
  if (g_interrupts) ::_exit(kExitInterrupted);
  g_interrupts = 1;
}

}  // namespace

int report_error(const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "weir: {}\n", log::printable(error.message));
  switch (error.code) {
    case ErrorCode::kInvalidArgument: return kExitUsage;
    case ErrorCode::kCancelled: return kExitInterrupted;
    default: return kExitFailed;
  }
}

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_signal;  // no SA_RESTART: a read at the prompt returns
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return g_interrupts != 0; }
void clear_interrupt() { g_interrupts = 0; }

}  // namespace weir::cli
