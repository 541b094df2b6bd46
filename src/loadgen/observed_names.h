// SPDX-License-Identifier: Apache-2.0
// Which series of a server matter during a load, and what they mean: a table of the names that servers use, so that the report, the
// bottleneck and the plots speak of "waiting", whoever served.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::loadgen {

// What a series tells, and in which unit the table's scale makes it be shown.
struct ObservedMeaning {
  std::string_view word;  // "running", "waiting", "kv_use", …; empty: not known
  std::string_view unit;  // "", "ratio", "s", "bytes", "W", "J", "tokens", "processors"
  double scale = 1;       // of the server's figures, to come to that unit: 0.01 where it tells per cent
};

ObservedMeaning meaning_of(std::string_view name);  // of a series of the table; otherwise an empty word

// Picks series by name: those of the table, or, where a pattern is given, those whose names it matches from their beginning on (ECMAScript;
// a prefix is a pattern too).
class SeriesFilter {
 public:
  static Result<SeriesFilter> make(const std::string& pattern);
  bool operator()(std::string_view name) const;

 private:
  struct Pattern;
  std::shared_ptr<const Pattern> pattern_;  // null: the table
};

}  // namespace weir::loadgen
