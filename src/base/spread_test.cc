// SPDX-License-Identifier: Apache-2.0
#include "base/spread.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Spread, TellsTheMiddleAndTheEndsInAnyOrder) {
  const Spread odd = spread_of({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 3);
  EXPECT_EQ(odd.count, 3);
}

TEST(Spread, TakesTheMeanOfTheMiddleTwoOfAnEvenNumber) { EXPECT_EQ(spread_of({10, 1, 4, 2}).median, 3); }

TEST(Spread, OfNothingIsZero) {
  const Spread none = spread_of({});
  EXPECT_EQ(none.count, 0);
  EXPECT_EQ(none.median, 0);
}

}  // namespace
}  // namespace weir
