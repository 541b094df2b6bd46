// SPDX-License-Identifier: Apache-2.0
// Runs another program without a shell: the arguments are passed as they are. Its output is kept (the end of it) so that
// an error can say what the program said.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::store {

struct ProcessResult {
  int exit_code = 0;   // 128 + the signal's number when a signal ended it
  std::string output;  // the last 64 KiB of standard output and standard error together
};

// `arguments[0]` is looked up in PATH. `tick` is called about ten times a second while waiting; false ends the program
// (SIGTERM, then SIGKILL) and gives kCancelled. kNotFound when there is no such program.
Result<ProcessResult> run_process(const std::vector<std::string>& arguments, const std::function<bool()>& tick = {});

}  // namespace weir::store
