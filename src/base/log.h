// SPDX-License-Identifier: Apache-2.0
// Diagnostics for the operator, on standard error, one line each. Results of a command go to standard output instead.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace weir::log {

enum class Level { kDebug, kInfo, kWarn, kError, kOff };

void set_level(Level level);
Level level();
void write(Level level, std::string_view line);

// The text with control characters as \xNN: names from files must not steer a terminal or fake lines.
std::string printable(std::string_view text);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::kDebug) write(Level::kDebug, fmt::vformat(format, fmt::make_format_args(args...)));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::kInfo) write(Level::kInfo, fmt::vformat(format, fmt::make_format_args(args...)));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::kWarn) write(Level::kWarn, fmt::vformat(format, fmt::make_format_args(args...)));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= Level::kError) write(Level::kError, fmt::vformat(format, fmt::make_format_args(args...)));
}

}  // namespace weir::log
