// SPDX-License-Identifier: Apache-2.0
#include "speculation/prompt_lookup.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

namespace weir::speculation {
namespace {

using Tokens = std::vector<TokenId>;

Tokens guesses_after(PromptLookup& lookup, std::size_t count) {
  const auto match = lookup.find();
  Tokens guesses(match.strength > 0 ? count : 0);
  if (match.strength > 0) lookup.read(match, guesses);
  return guesses;
}

Tokens random_tokens(std::mt19937& random, std::size_t count, TokenId vocabulary) {
  Tokens tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % static_cast<std::uint32_t>(vocabulary));
  return tokens;
}

// A text with phrases that come again, as real ones have.
Tokens repetitive_tokens(std::mt19937& random, std::size_t count) {
  Tokens tokens = random_tokens(random, 20, 50);
  while (tokens.size() < count) {
    if (random() % 3 == 0) {
      const Tokens fresh = random_tokens(random, 1 + random() % 6, 50);
      tokens.insert(tokens.end(), fresh.begin(), fresh.end());
    } else {
      const std::size_t from = random() % tokens.size(), length = std::min<std::size_t>(1 + random() % 20, tokens.size() - from);
      const Tokens again(tokens.begin() + static_cast<std::ptrdiff_t>(from), tokens.begin() + static_cast<std::ptrdiff_t>(from + length));
      tokens.insert(tokens.end(), again.begin(), again.end());
    }
  }
  tokens.resize(count);
  return tokens;
}

TEST(PromptLookup, GoesOnWhereTheLastTokensStoodBefore) {
  PromptLookup lookup;
  lookup.append(Tokens{1, 2, 3, 4, 5, 6, 9, 2, 3});
  EXPECT_EQ(lookup.find().strength, 2);
  EXPECT_EQ(guesses_after(lookup, 3), (Tokens{4, 5, 6}));
}

TEST(PromptLookup, OneTokenOrNoneIsNoRepeat) {
  PromptLookup lookup;
  EXPECT_EQ(lookup.find().strength, 0);
  lookup.append(Tokens{1, 2, 3, 4, 9, 3});
  EXPECT_EQ(lookup.find().strength, 0);
}

TEST(PromptLookup, PrefersTheLongerRepeatToTheLaterOne) {
  PromptLookup lookup;
  lookup.append(Tokens{1, 2, 3, 4, 5, 6, 70, 0, 4, 5, 6, 80, 0, 0, 9, 2, 3, 4, 5, 6});
  EXPECT_EQ(lookup.find().strength, 5);
  EXPECT_EQ(guesses_after(lookup, 1), Tokens{70});
}

TEST(PromptLookup, PrefersTheLaterOfEqualRepeats) {
  PromptLookup lookup;
  lookup.append(Tokens{1, 5, 6, 70, 2, 5, 6, 80, 3, 5, 6});
  EXPECT_EQ(guesses_after(lookup, 1), Tokens{80});
}

TEST(PromptLookup, APeriodGoesOnBehindTheEnd) {
  PromptLookup lookup;
  lookup.append(Tokens{1, 2, 3, 1, 2, 3, 1, 2});
  EXPECT_EQ(guesses_after(lookup, 7), (Tokens{3, 1, 2, 3, 1, 2, 3}));
}

// The copy of 100, 101, … with one word changed, removed or added: how soon it is found again.
struct Edit {
  const char* name;
  Tokens instead;
  TokenId back_at;  // the next token of the original
};

class AfterAnEdit : public ::testing::TestWithParam<Edit> {};

TEST_P(AfterAnEdit, TheCopyIsFoundAgainAfterOneToken) {
  Tokens tokens(60);
  std::iota(tokens.begin(), tokens.end(), 100);
  PromptLookup lookup;
  lookup.append(tokens);
  lookup.append(Tokens{7});
  const auto say = [&](TokenId token) {
    lookup.find();
    lookup.append(Tokens{token});
  };
  for (TokenId token = 100; token < 120; ++token) say(token);
  EXPECT_EQ(guesses_after(lookup, 2), (Tokens{120, 121}));
  for (const TokenId token : GetParam().instead) say(token);
  say(GetParam().back_at);
  EXPECT_EQ(guesses_after(lookup, 2), (Tokens{GetParam().back_at + 1, GetParam().back_at + 2}));
  EXPECT_GE(lookup.find().strength, 1 + PromptLookup::kNear);
}

INSTANTIATE_TEST_SUITE_P(Edits, AfterAnEdit,
                         ::testing::Values(Edit{"Replaced", {8}, 121}, Edit{"ByTwo", {8, 9}, 121}, Edit{"Added", {8}, 120},
                                           Edit{"ManyAdded", {8, 9, 10, 11}, 120}, Edit{"Removed", {}, 123}),
                         [](const auto& info) { return info.param.name; });

TEST(PromptLookup, AfterAReplacedTokenTheNextIsGuessedAtOnce) {
  PromptLookup lookup;
  lookup.append(Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4});
  lookup.find();
  lookup.append(Tokens{50});
  EXPECT_EQ(lookup.find().strength, 1);
  EXPECT_EQ(guesses_after(lookup, 2), (Tokens{6, 7}));
}

TEST(PromptLookup, RecordsOfOneKindAreCopiedFromTheOriginalAndNotFromTheLastOne) {
  Tokens records;
  for (TokenId i = 0; i < 10; ++i) {
    const TokenId record[] = {1, 2, 3, 4, 100 + i, 5, 6, 7};
    records.insert(records.end(), std::begin(record), std::end(record));
  }
  PromptLookup lookup;
  lookup.append(records);
  lookup.append(Tokens{99});
  int right = 0;
  for (const TokenId token : records) {
    right += guesses_after(lookup, 1) == Tokens{token} ? 1 : 0;
    lookup.append(Tokens{token});
  }
  EXPECT_GE(right, static_cast<int>(records.size()) - 12) << "only the first record may be taken for another";
}

// The two n-grams and their latest places, by looking everywhere.
PromptLookup::Match brute_force(const Tokens& tokens) {
  const auto size = static_cast<std::int32_t>(tokens.size());
  PromptLookup::Match best;
  for (const std::int32_t n : {PromptLookup::kLong, PromptLookup::kShort}) {
    if (best.strength >= PromptLookup::kLong) break;
    std::int32_t places = 0;
    for (std::int32_t place = size - 1; place >= n && places < PromptLookup::kPlaces; --place) {
      std::int32_t same = 0;
      while (same < std::min(place, PromptLookup::kLongest) &&
             tokens[static_cast<std::size_t>(place - 1 - same)] == tokens[static_cast<std::size_t>(size - 1 - same)])
        ++same;
      if (same < n) continue;
      ++places;
      if (same > best.strength) best = {same, place};
    }
  }
  return best;
}

TEST(PromptLookup, FindsWhatLookingEverywhereFinds) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    const Tokens tokens = round % 3 == 0 ? random_tokens(random, 400, 4) : repetitive_tokens(random, 400);
    PromptLookup lookup;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      lookup.append(std::span(tokens).subspan(i, 1));
      if (i % 7 != 0) continue;
      PromptLookup fresh = lookup;  // has not copied yet
      const auto found = fresh.find();
      const auto expected = brute_force(Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i + 1)));
      ASSERT_EQ(found.strength, expected.strength) << "round " << round << " at " << i;
      if (found.strength > 0) {
        ASSERT_EQ(found.next, expected.next) << "round " << round << " at " << i;
      }
    }
  }
}

TEST(PromptLookup, TokensTakenBackLeaveNoTrace) {
  std::mt19937 random(6);
  PromptLookup lookup;
  Tokens tokens;
  for (int round = 0; round < 400; ++round) {
    const Tokens more = repetitive_tokens(random, 1 + random() % 40);
    lookup.append(more);
    tokens.insert(tokens.end(), more.begin(), more.end());
    const std::size_t keep = round % 50 == 49 ? random() % 3 : tokens.size() - random() % std::min<std::size_t>(tokens.size(), 45);
    lookup.truncate(static_cast<std::int64_t>(keep));
    tokens.resize(keep);
    ASSERT_EQ(lookup.size(), static_cast<std::int64_t>(keep));
    const auto expected = brute_force(tokens);
    const auto found = lookup.find();
    ASSERT_EQ(found.strength, expected.strength) << "round " << round;
    if (found.strength > 0) {
      ASSERT_EQ(found.next, expected.next) << "round " << round;
    }
    lookup.truncate(lookup.size());
  }
}

TEST(PromptLookup, ForgetsTheOlderHalfOfALongSequence) {
  PromptLookup lookup(1000);
  Tokens tokens(1'500);
  std::iota(tokens.begin(), tokens.end(), 0);
  lookup.append(tokens);
  EXPECT_EQ(lookup.size(), 1'500);
  lookup.append(Tokens{3, 4});
  EXPECT_EQ(lookup.find().strength, 0) << "forgotten";
  lookup.append(Tokens{1'400, 1'401});
  EXPECT_EQ(guesses_after(lookup, 2), (Tokens{1'402, 1'403}));
  lookup.truncate(1'450);
  lookup.append(Tokens{1'200, 1'201});
  EXPECT_EQ(lookup.size(), 1'452);
  EXPECT_EQ(guesses_after(lookup, 1), Tokens{1'202});
  lookup.truncate(100);
  EXPECT_EQ(lookup.size(), 100);
  EXPECT_EQ(lookup.find().strength, 0);
  lookup.append(Tokens{1, 2, 3, 1, 2});
  EXPECT_EQ(guesses_after(lookup, 1), Tokens{3});
}

TEST(PromptLookup, AnyTokensAreTaken) {
  PromptLookup lookup;
  lookup.append(Tokens{-1, INT32_MAX, INT32_MIN, 5, -1, INT32_MAX});
  EXPECT_EQ(guesses_after(lookup, 1), Tokens{INT32_MIN});
}

TEST(PromptLookup, OneTokenForEverStaysCheap) {
  PromptLookup lookup;
  for (int i = 0; i < 200'000; ++i) {
    lookup.append(Tokens{3});
    if (i > 2) {
      ASSERT_EQ(guesses_after(lookup, 2), (Tokens{3, 3}));
    }
  }
}

}  // namespace
}  // namespace weir::speculation
