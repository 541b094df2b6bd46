// SPDX-License-Identifier: Apache-2.0
#include "serving/config_hint.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace weir::serving {
namespace {

// Levenshtein's distance, '-' and '_' being the same.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) { return x == y || ((x == '-' || x == '_') && (y == '-' || y == '_')); };
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (same(a[i], b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> names) {
  if (name.size() > 64) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : names) {
    const std::size_t d = distance(name, candidate);
    if (d < least) least = d, best = candidate;
  }
  return best;
}

std::string hint_for(std::string_view name, std::span<const std::string_view> names) {
  const auto nearest = nearest_name(name, names);
  return nearest ? "; did you mean '" + std::string(*nearest) + "'?" : std::string();
}

}  // namespace weir::serving
