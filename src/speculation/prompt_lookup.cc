// SPDX-License-Identifier: Apache-2.0
#include "speculation/prompt_lookup.h"

#include <algorithm>

#include "base/check.h"

namespace weir::speculation {

PromptLookup::PromptLookup(std::int64_t max_tokens) : max_tokens_(std::clamp<std::int64_t>(max_tokens, 64, 1 << 30)) {}

void PromptLookup::append(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) push(token);
}

void PromptLookup::push(TokenId token) {
  if (static_cast<std::int64_t>(tokens_.size()) >= max_tokens_) forget_half();
  follow(token);
  tokens_.push_back(token);
  short_.push(tokens_);
  long_.push(tokens_);
}

// Moves the place copied from on, or notes where the copy was left.
void PromptLookup::follow(TokenId token) {
  if (source_.strength == 0) {
    ++since_;
  } else if (tokens_[static_cast<std::size_t>(source_.next)] == token) {
    source_.strength = source_.strength == kResumed ? kResumed + kNear : std::min(source_.strength + 1, kLongest);
    ++source_.next;
  } else {
    left_ = source_.next;
    since_ = 1;
    source_ = {};
  }
}

void PromptLookup::forget_half() {
  const std::size_t half = tokens_.size() / 2;
  std::vector<TokenId> rest(tokens_.begin() + static_cast<std::ptrdiff_t>(half), tokens_.end());
  forgotten_ += static_cast<std::int64_t>(half);
  tokens_.clear();
  short_.clear();
  long_.clear();
  source_ = {};
  left_ = -1;
  append(rest);
}

void PromptLookup::truncate(std::int64_t size) {
  WEIR_CHECK(size >= 0, "truncate to {}", size);
  for (; this->size() > size && !tokens_.empty(); tokens_.pop_back()) {
    short_.pop(tokens_);
    long_.pop(tokens_);
  }
  forgotten_ = std::min(forgotten_, size);
  source_ = {};
  left_ = -1;
}

// How many of the last tokens also stand before `place`.
std::int32_t PromptLookup::agreement(std::int32_t place) const {
  const std::int32_t most = std::min(place, kLongest);
  std::int32_t n = 0;
  while (n < most && tokens_[static_cast<std::size_t>(place - 1 - n)] == tokens_[tokens_.size() - 1 - static_cast<std::size_t>(n)]) ++n;
  return n;
}

bool PromptLookup::near(std::int32_t place) const {
  return left_ >= 0 && since_ <= kPatience && place >= left_ - kReach && place <= left_ + kReach;
}

void PromptLookup::consider(std::int32_t place, Match& best) const {
  const std::int32_t length = agreement(place);
  const std::int32_t strength = length == 0 ? 0 : length + (near(place) ? kNear : 0);
  if (strength > best.strength) best = {std::min(strength, kLongest), place};
}

void PromptLookup::consider_chain(const NgramChains& chains, Match& best) const {
  std::int32_t end = chains.previous(static_cast<std::int32_t>(tokens_.size()) - 1);
  for (std::int32_t i = 0; i < kPlaces && end != NgramChains::kNone; ++i, end = chains.previous(end)) consider(end + 1, best);
}

// One token that agrees is enough beside the place that was just left: the change may have been that short.
void PromptLookup::consider_neighbours(Match& best) const {
  if (left_ < 0 || since_ > kPatience) return;
  const auto size = static_cast<std::int32_t>(tokens_.size());
  for (std::int32_t away = 0; away <= kReach; ++away) {
    for (const std::int32_t place : {left_ + away, left_ - away}) {
      if (place >= 1 && place < size) consider(place, best);
    }
  }
  if (best.strength == 0 && since_ == 1 && left_ + 1 < size) best = {kResumed, left_ + 1};  // one token in place of another
}

PromptLookup::Match PromptLookup::find() {
  if (tokens_.empty()) return {};
  if (source_.strength >= kLongest) return source_;
  Match best = source_;
  if (source_.strength == 0) consider_neighbours(best);
  consider_chain(long_, best);
  if (best.strength < kLong) consider_chain(short_, best);
  source_ = best;
  return best;
}

void PromptLookup::read(const Match& match, std::span<TokenId> guesses) const {
  const auto next = static_cast<std::size_t>(match.next);
  WEIR_CHECK(match.strength > 0 && next < tokens_.size(), "a match at {} of {} tokens", match.next, tokens_.size());
  for (std::size_t i = 0; i < guesses.size(); ++i)
    guesses[i] = next + i < tokens_.size() ? tokens_[next + i] : guesses[next + i - tokens_.size()];
}

}  // namespace weir::speculation
