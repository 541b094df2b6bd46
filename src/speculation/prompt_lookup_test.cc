// SPDX-License-Identifier: Apache-2.0
#include "speculation/prompt_lookup.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace weir::speculation {
namespace {

std::vector<TokenId> guesses_after(PromptLookup& lookup, std::size_t count) {
  const auto match = lookup.find();
  std::vector<TokenId> guesses(match.strength > 0 ? count : 0);
  if (match.strength > 0) lookup.read(match, guesses);
  return guesses;
}

TEST(PromptLookup, GoesOnWhereTheLastTokensStoodBefore) {
  PromptLookup lookup;
  lookup.append(std::vector<TokenId>{1, 2, 3, 4, 5, 6, 9, 2, 3});
  EXPECT_EQ(lookup.find().strength, 2);
  EXPECT_EQ(guesses_after(lookup, 3), (std::vector<TokenId>{4, 5, 6}));
}

}  // namespace
}  // namespace weir::speculation
