// SPDX-License-Identifier: Apache-2.0
#include "speculation/row_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::speculation {
namespace {

constexpr double kShare = 0.15;   // of a new measurement
constexpr double kFirst = 2;      // the first one at its rows, over what was expected
constexpr double kOutlier = 1.5;  // a step that was disturbed counts as that much slower at most

// Beyond what was measured rows are hoped to get cheaper: the second row often pays for another kernel, the third no more.
constexpr double kHope = 0.5;

}  // namespace

RowCost::RowCost(double slope) : slope_(slope) { knots_[0] = {1, true}; }

std::int64_t RowCost::rows_at(std::size_t knot) {
  if (knot < 16) return static_cast<std::int64_t>(knot) + 1;
  const std::size_t above = knot - 15;
  return static_cast<std::int64_t>(4 + above % 4) << (2 + above / 4);
}

std::size_t RowCost::nearest(std::int64_t rows) {
  if (rows <= 16) return static_cast<std::size_t>(std::max<std::int64_t>(rows, 1) - 1);
  const auto width = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(rows)));  // 16 to 31: 5
  const std::size_t below = 15 + (width - 5) * 4 + ((static_cast<std::size_t>(rows) >> (width - 3)) & 3);
  if (below + 1 >= kKnots) return kKnots - 1;
  return rows - rows_at(below) <= rows_at(below + 1) - rows ? below : below + 1;
}

void RowCost::record(std::int64_t rows, Duration elapsed) {
  if (rows < 1 || elapsed <= Duration::zero()) return;
  const double time = to_seconds(elapsed);
  const std::size_t at = nearest(rows);
  Knot& knot = knots_[at];
  if (most_ == 0) level_ = time / relative(rows);
  most_ = std::max(most_, rows);
  if (!knot.known) {
    knot = {std::clamp(time / level_, 1.0, relative(rows) * kFirst), true};
    return;
  }
  const double step = std::pow(std::clamp(time / (level_ * knot.relative), 1 / kOutlier, kOutlier), kShare);
  // A step of several rows tells level and shape together; half of the news goes to each.
  level_ *= at == 0 ? step : std::sqrt(step);
  if (at > 0) knot.relative = std::max(1.0, knot.relative * std::sqrt(step));
}

double RowCost::relative(std::int64_t rows) const {
  std::size_t low = 0, high = kKnots;
  for (std::size_t i = 1; i < kKnots; ++i) {
    if (!knots_[i].known) continue;
    if (rows_at(i) <= rows) {
      low = i;
    } else {
      high = i;
      break;
    }
  }
  const auto from = static_cast<double>(rows_at(low));
  const double beyond = static_cast<double>(std::max<std::int64_t>(rows, 1)) - from;
  double slope = slope_;
  if (high < kKnots) {
    slope = (knots_[high].relative - knots_[low].relative) / (static_cast<double>(rows_at(high)) - from);
  } else if (low > 0) {
    slope = std::max(slope_, kHope * (knots_[low].relative - 1) / (from - 1));
  }
  return knots_[low].relative + slope * beyond;
}

}  // namespace weir::speculation
