// SPDX-License-Identifier: Apache-2.0
#include "base/spread.h"

#include <algorithm>

namespace weir {

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median = values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {.median = median, .min = values.front(), .max = values.back(), .count = static_cast<int>(values.size())};
}

}  // namespace weir
