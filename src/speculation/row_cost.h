// SPDX-License-Identifier: Apache-2.0
// Seconds that a step takes by its rows, as the engine measured them. A decode step that waits for memory runs further rows nearly
// for nothing until arithmetic or attention fills the time; where that is differs from machine to machine and from kernel to kernel.
// Kept as a level (a step of one row, which drifts with the context) times a shape (relative to one row, which hardly does).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace weir::speculation {

class RowCost {
 public:
  // `slope` is assumed until measured: what a further row adds, relative to a step of one.
  explicit RowCost(double slope = 0.1);

  void record(std::int64_t rows, Duration elapsed);

  // Of a step with so many rows, at least 1. Before anything was measured a step of one row is taken to last a second.
  double seconds(std::int64_t rows) const { return level_ * relative(rows); }
  double relative(std::int64_t rows) const;
  // Rows that a step beside `rows` may have without a leap into what was never measured: half as many again as the largest yet;
  // none beside them before the first step was measured.
  std::int64_t within_reach(std::int64_t rows) const {
    if (most_ == 0) return rows;
    const std::int64_t most = most_ > rows ? most_ : rows;
    return most + (most > 2 ? most / 2 : 1);
  }

 private:
  static constexpr std::size_t kKnots = 40;  // 1 to 16, then four for each doubling, to 1024
  static std::int64_t rows_at(std::size_t knot);
  static std::size_t nearest(std::int64_t rows);

  struct Knot {
    double relative = 0;
    bool known = false;
  };
  std::array<Knot, kKnots> knots_;
  double slope_, level_ = 1;
  std::int64_t most_ = 0;  // rows measured in one step
};

}  // namespace weir::speculation
