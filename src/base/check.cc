// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace weir {

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  fmt::print(stderr, "weir: internal error at {}:{}: {}{}{}\n", file, line, condition, detail.empty() ? "" : ": ", detail);
  std::fflush(stderr);
  std::abort();
}

}  // namespace weir
