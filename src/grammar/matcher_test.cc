// SPDX-License-Identifier: Apache-2.0
// Matchers over SmolLM2's real vocabulary: masks, the end, forced tokens, taking back, forks, and the worker's masks.
#include "grammar/matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "grammar/mask_worker.h"
#include "grammar/testing_vocabulary.h"

namespace weir::grammar {
namespace {

using testing::accept_text;
using testing::make_matcher;

std::size_t allowed_count(std::span<const std::uint32_t> mask) {
  std::size_t count = 0;
  for (const std::uint32_t word : mask) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

bool allows(std::span<const std::uint32_t> mask, TokenId id) {
  return (mask[static_cast<std::size_t>(id) / 32] >> (static_cast<std::size_t>(id) % 32)) & 1u;
}

TEST(Matcher, AnswersThatMatchTheChoicesEndOnlyWhenTheyAreWhole) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  Matcher matcher = make_matcher({.kind = GrammarKind::kChoice, .choices = {"yes", "yes and no", "no"}});
  ASSERT_TRUE(matcher.mask());
  EXPECT_FALSE(*matcher.may_end());
  ASSERT_TRUE(accept_text(matcher, "yes"));
  EXPECT_TRUE(*matcher.may_end());
  EXPECT_FALSE(matcher.must_end());
  ASSERT_TRUE(accept_text(matcher, " and no"));
  EXPECT_TRUE(matcher.must_end());
  const TokenId end = testing::smollm2().end_of_generation.front();
  EXPECT_TRUE(allows(*matcher.mask(), end));
  EXPECT_EQ(allowed_count(*matcher.mask()), testing::smollm2().end_of_generation.size());
  EXPECT_TRUE(matcher.accept(end));
  EXPECT_TRUE(matcher.finished());
  EXPECT_FALSE(matcher.accept(end));
}

}  // namespace
}  // namespace weir::grammar
