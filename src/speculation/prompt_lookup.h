// SPDX-License-Identifier: Apache-2.0
// Guesses from the sequence itself: where its last tokens stood before, in the prompt or the answer, the text often goes on as it
// did there (prompt look-up decoding; LLMA, Yang et al. 2023, arXiv:2304.04487). The longest repeat wins. An answer that edits a text
// leaves it at each change and comes back a few tokens later, so places near the one last copied from count as longer repeats.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "speculation/ngram_chains.h"

namespace weir::speculation {

class PromptLookup {
 public:
  // Of a longer sequence the older half is forgotten. 28 to 52 bytes a token.
  explicit PromptLookup(std::int64_t max_tokens = std::int64_t{1} << 20);

  // Amortised O(1) a token.
  void append(std::span<const TokenId> tokens);
  // Takes the last ones back. O(1) a token.
  void truncate(std::int64_t size);
  std::int64_t size() const { return forgotten_ + static_cast<std::int64_t>(tokens_.size()); }

  struct Match {
    // Tokens that agree, up to kLongest, and kNear more for a place near the last one; kResumed when none does and the copy is taken
    // to go on behind one that was replaced; 0 = none.
    std::int32_t strength = 0;
    std::int32_t next = 0;  // where it goes on, within the tokens kept
  };
  // O(1): at most kPlaces places of each of two n-grams are looked at. The place is remembered as the one copied from.
  Match find();
  // What follows there, and its own repeat behind the end: a period goes on for ever.
  void read(const Match& match, std::span<TokenId> guesses) const;

  static constexpr std::int32_t kShort = 2, kLong = 5;  // n of the two n-grams
  static constexpr std::int32_t kPlaces = 16, kLongest = 32, kNear = 3, kResumed = 1;
  static constexpr std::int32_t kReach = 12, kPatience = 8;  // near: so far from where it was left, for so many tokens

 private:
  void push(TokenId token);
  void forget_half();
  void follow(TokenId token);
  std::int32_t agreement(std::int32_t place) const;
  bool near(std::int32_t place) const;
  void consider(std::int32_t place, Match& best) const;
  void consider_chain(const NgramChains& chains, Match& best) const;
  void consider_neighbours(Match& best) const;

  std::int64_t max_tokens_, forgotten_ = 0;
  std::vector<TokenId> tokens_;
  NgramChains short_{kShort}, long_{kLong};
  Match source_;            // the place copied from, moved on with the tokens that agreed
  std::int32_t left_ = -1;  // where copying ended: the token that differed stands there
  std::int32_t since_ = 0;  // tokens since then
};

}  // namespace weir::speculation
