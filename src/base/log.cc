// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <string>

namespace weir::log {
namespace {

std::atomic<Level> g_level{Level::kWarn};

const char* prefix(Level level) {
  switch (level) {
    case Level::kDebug: return "debug: ";
    case Level::kInfo: return "";
    case Level::kWarn: return "warning: ";
    default: return "error: ";
  }
}

}  // namespace

void set_level(Level level) { g_level.store(level, std::memory_order_relaxed); }
Level level() { return g_level.load(std::memory_order_relaxed); }

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

void write(Level level, std::string_view line) {
  const std::string whole = fmt::format("weir: {}{}\n", prefix(level), printable(line));
  std::fwrite(whole.data(), 1, whole.size(), stderr);  // one call, so that lines of threads do not mix
}

}  // namespace weir::log
