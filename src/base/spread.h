// SPDX-License-Identifier: Apache-2.0
// What repeated measurements of one thing came to. A figure without its spread says nothing about how far to trust it.
#pragma once

#include <vector>

namespace weir {

struct Spread {
  double median = 0, min = 0, max = 0;
  int count = 0;
};

// Of an even number the median is the mean of the middle two. No values: all zeros.
Spread spread_of(std::vector<double> values);

}  // namespace weir
