// SPDX-License-Identifier: Apache-2.0
#include "loadgen/search.h"

#include <cmath>

#include "loadgen/distribution.h"

namespace weir::loadgen {
namespace {

constexpr std::size_t kMaxLevels = 10000;

}  // namespace

Result<Range> parse_range(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() > 3) return fail(ErrorCode::kInvalidArgument, "'{}': a range is start:end:step", text);
  Range range;
  WEIR_ASSIGN(range.low, parse_number(parts[0], "range"));
  range.high = range.low;
  if (parts.size() > 1) {
    WEIR_ASSIGN(range.high, parse_number(parts[1], "range"));
  }
  if (parts.size() > 2) {
    WEIR_ASSIGN(range.step, parse_number(parts[2], "range"));
  }
  if (range.low <= 0 || range.high < range.low || range.step <= 0)
    return fail(ErrorCode::kInvalidArgument, "'{}': a range begins above zero, does not end before, and its step is above zero", text);
  return range;
}

Result<std::vector<double>> parse_levels(std::string_view text) {
  std::vector<double> levels;
  if (text.find(':') == std::string_view::npos) {
    for (const std::string_view part : split(text, ',')) {
      WEIR_ASSIGN(const double level, parse_number(part, "level"));
      if (level <= 0) return fail(ErrorCode::kInvalidArgument, "'{}': levels are above zero", text);
      levels.push_back(level);
    }
    return levels;
  }
  double factor = 0;
  std::string_view plain = text;
  if (const std::size_t x = text.rfind(":x"); x != std::string_view::npos) {
    WEIR_ASSIGN(factor, parse_number(text.substr(x + 2), "factor"));
    if (factor <= 1.0001) return fail(ErrorCode::kInvalidArgument, "'{}': the factor is above 1", text);
    plain = text.substr(0, x);
  }
  WEIR_ASSIGN(const Range range, parse_range(plain));
  for (std::size_t i = 0; levels.size() < kMaxLevels; ++i) {
    const double n = static_cast<double>(i), level = factor > 0 ? range.low * std::pow(factor, n) : range.low + range.step * n;
    if (level > range.high * (1 + 1e-9)) return levels;
    levels.push_back(level);
  }
  return fail(ErrorCode::kInvalidArgument, "'{}': more than {} levels", text, kMaxLevels);
}

Result<SearchResult> find_highest(double low, double high, double resolution, const std::function<Result<bool>(double)>& passes) {
  SearchResult result;
  const auto probe = [&](double level) -> Result<bool> {
    WEIR_ASSIGN(const bool passed, passes(level));
    result.steps.push_back({level, passed});
    return passed;
  };
  WEIR_ASSIGN(const bool low_passed, probe(low));
  if (!low_passed) return result;
  result.highest = low;
  if (high <= low) return result;
  WEIR_ASSIGN(const bool high_passed, probe(high));
  if (high_passed) {
    result.highest = high;
    result.reached_end = true;
    return result;
  }
  for (int i = 0; i < 60 && high - low > resolution * (1 + 1e-9); ++i) {
    double middle = (low + high) / 2;
    if (high - low > 2 * resolution) middle = low + std::round((middle - low) / resolution) * resolution;  // levels that read well
    WEIR_ASSIGN(const bool passed, probe(middle));
    (passed ? low : high) = middle;
    if (passed) result.highest = middle;
  }
  return result;
}

}  // namespace weir::loadgen
