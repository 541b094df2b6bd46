// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace weir {
namespace {

template <std::size_t N>
std::string scaled(double value, const std::array<const char*, N>& suffixes) {
  std::size_t step = 0;
  while (value >= 999.5 && step + 1 < N) {
    value /= 1000;
    ++step;
  }
  if (step == 0) return fmt::format("{:.0f}{}", value, suffixes[0]);
  return fmt::format("{:.3g}{}", value, suffixes[step]);
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), std::array{" B", " kB", " MB", " GB", " TB", " PB"});
}

std::string format_count(std::uint64_t count) { return scaled(static_cast<double>(count), std::array{"", " k", " M", " B", " T"}); }

std::string format_duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace weir
