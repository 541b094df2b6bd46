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

constexpr const char* kPoint = R"({"type":"object","properties":{"x":{"type":"integer"},"label":{"enum":["left","right"]}},
                                     "required":["x","label"],"additionalProperties":false})";

GrammarSpec point() { return {.kind = GrammarKind::kJsonSchema, .text = kPoint, .whitespace = JsonWhitespace::kNone}; }

std::vector<std::uint32_t> copy_of_mask(Matcher& matcher) {
  const auto mask = matcher.mask();
  return mask ? std::vector<std::uint32_t>(mask->begin(), mask->end()) : std::vector<std::uint32_t>();
}

TEST(Matcher, ForcedTokensAreThoseTheTokenizerWouldMake) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  Matcher matcher = make_matcher(point());
  const auto forced = matcher.forced();
  ASSERT_TRUE(forced) << forced.error().message;
  const std::vector<TokenId> whole = spell(testing::smollm2(), R"({"x":1)");
  ASSERT_GE(forced->size(), 2u);
  EXPECT_TRUE(std::equal(forced->begin(), forced->end(), whole.begin())) << forced->size();
  EXPECT_EQ(matcher.size(), 0u);
  EXPECT_EQ(allowed_count(*matcher.mask()), 1u);
  EXPECT_TRUE(allows(*matcher.mask(), forced->front()));
  for (const TokenId token : *forced) ASSERT_TRUE(matcher.accept(token));
  EXPECT_GT(allowed_count(*matcher.mask()), 1u);  // what may be cut in two ways is left to the model
}

TEST(Matcher, TakingBackLeadsToTheSameMasks) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  Matcher matcher = make_matcher(point());
  std::vector<std::vector<std::uint32_t>> masks{copy_of_mask(matcher)};
  std::vector<TokenId> tokens = spell(testing::smollm2(), R"({"x":12,"label":"left"})");
  tokens.push_back(testing::smollm2().end_of_generation.front());
  for (const TokenId token : tokens) {
    ASSERT_TRUE(matcher.accept(token));
    masks.push_back(copy_of_mask(matcher));
  }
  EXPECT_TRUE(matcher.finished());
  for (std::size_t back = 1; back <= tokens.size(); ++back) {
    ASSERT_TRUE(matcher.rollback(back));
    EXPECT_FALSE(matcher.finished());
    EXPECT_EQ(copy_of_mask(matcher), masks[tokens.size() - back]);
    for (std::size_t i = tokens.size() - back; i < tokens.size(); ++i) ASSERT_TRUE(matcher.accept(tokens[i]));
    EXPECT_EQ(copy_of_mask(matcher), masks.back());
  }
  EXPECT_FALSE(matcher.rollback(tokens.size() + 1));
}

TEST(Matcher, IsRebuiltByAcceptingItsTokensAgain) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  Matcher first = make_matcher(point());
  const std::vector<TokenId> tokens = spell(testing::smollm2(), R"({"x":-7,"label)");
  for (const TokenId token : tokens) ASSERT_TRUE(first.accept(token));
  Matcher second = make_matcher(point());  // compiled anew, as in another process
  for (const TokenId token : tokens) ASSERT_TRUE(second.accept(token));
  EXPECT_EQ(copy_of_mask(first), copy_of_mask(second));
  EXPECT_EQ(*first.forced(), *second.forced());
}

TEST(Matcher, ForksGoTheirOwnWays) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  Matcher first = make_matcher({.kind = GrammarKind::kRegex, .text = "(ab|ac)[0-9]"});
  ASSERT_TRUE(accept_text(first, "a"));
  auto second = first.clone();
  ASSERT_TRUE(second);
  ASSERT_TRUE(accept_text(first, "b1"));
  EXPECT_TRUE(first.must_end());
  EXPECT_EQ(second->size(), 1u);
  ASSERT_TRUE(accept_text(*second, "c2"));
  EXPECT_TRUE(second->must_end());
}

TEST(Matcher, RefusedTokensChangeNothing) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  Matcher matcher = make_matcher(point());
  const auto before = copy_of_mask(matcher);
  for (const TokenId token : {TokenId{-1}, TokenId{1 << 30}, testing::smollm2().end_of_generation.front(), *testing::smollm2().find("x")}) {
    const Status accepted = matcher.accept(token);
    ASSERT_FALSE(accepted);
    EXPECT_EQ(accepted.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(copy_of_mask(matcher), before);
  const TokenId far[] = {1 << 30};
  EXPECT_EQ(*matcher.validate(far), 0u);
  EXPECT_TRUE(accept_text(matcher, R"({"x":1)"));
}

TEST(Matcher, ValidatesADraftUpToItsFirstWrongToken) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  Matcher matcher = make_matcher(point());
  std::vector<TokenId> draft = spell(testing::smollm2(), R"({"x":3,"label":"right"})");
  draft.push_back(testing::smollm2().end_of_generation.front());
  EXPECT_EQ(*matcher.validate(draft), draft.size());
  draft.push_back(draft.front());
  EXPECT_EQ(*matcher.validate(draft), draft.size() - 1);
  draft[2] = testing::smollm2().end_of_generation.front();
  EXPECT_EQ(*matcher.validate(draft), 2u);
  EXPECT_EQ(matcher.size(), 0u);
}

TEST(MaskWorker, MasksAreThoseOfOneStepAfterTheOther) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  const std::vector<TokenId> draft = spell(testing::smollm2(), R"({"x":3,"label":"ri)");
  std::vector<TokenId> wrong = draft;
  wrong[3] = *testing::smollm2().find("}");
  std::vector<Matcher> matchers;
  for (int i = 0; i < 5; ++i) matchers.push_back(make_matcher(point()));
  std::vector<MaskJob> jobs;
  for (Matcher& matcher : matchers) jobs.push_back({.matcher = &matcher, .guesses = jobs.size() % 2 ? draft : wrong});
  MaskWorker worker;
  for (int round = 0; round < 3; ++round) {
    worker.start(jobs);
    worker.wait();
    for (std::size_t i = 0; i < matchers.size(); ++i) {
      ASSERT_TRUE(jobs[i].status) << jobs[i].status.error().message;
      EXPECT_EQ(matchers[i].mask_count(), i % 2 ? draft.size() + 1 : 4u);
      EXPECT_EQ(matchers[i].size(), 0u);
    }
  }
  Matcher stepwise = make_matcher(point());
  for (std::size_t i = 0; i <= draft.size(); ++i) {
    const auto mask = matchers[1].mask_at(i);
    EXPECT_EQ(copy_of_mask(stepwise), std::vector<std::uint32_t>(mask.begin(), mask.end())) << i;
    if (i < draft.size()) {
      ASSERT_TRUE(stepwise.accept(draft[i]));
    }
  }
}

}  // namespace
}  // namespace weir::grammar
