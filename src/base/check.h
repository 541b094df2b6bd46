// SPDX-License-Identifier: Apache-2.0
// CHECK is for our own bugs only: a broken invariant prints where and why, then aborts. Never use it on anything that
// came from outside the process; that is what Result<T> is for.
#pragma once

#include <fmt/core.h>

#include <string>

namespace weir {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);
}

// CHECK(condition) or CHECK(condition, "format {}", value).
#define WEIR_CHECK(condition, ...)                                                         \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::weir::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
