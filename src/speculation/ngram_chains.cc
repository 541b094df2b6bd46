// SPDX-License-Identifier: Apache-2.0
#include "speculation/ngram_chains.h"

#include <algorithm>

#include "base/check.h"

namespace weir::speculation {
namespace {

// Half full, a search of this length happens by chance less than once in 10^9; by malice it ends here.
constexpr std::size_t kMostProbes = 128;
constexpr std::size_t kLeastSlots = 64;

}  // namespace

std::size_t NgramChains::home(std::span<const TokenId> tokens, std::int32_t position) const {
  std::uint64_t h = 0;
  for (std::int32_t i = position - n_ + 1; i <= position; ++i) {
    h = (h ^ static_cast<std::uint32_t>(tokens[static_cast<std::size_t>(i)])) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return static_cast<std::size_t>(h) & (slots_.size() - 1);
}

bool NgramChains::same(std::span<const TokenId> tokens, std::int32_t a, std::int32_t b) const {
  const auto gram = [&](std::int32_t end) { return tokens.begin() + end + 1 - n_; };
  return std::equal(gram(a), gram(a) + n_, gram(b));
}

void NgramChains::push(std::span<const TokenId> tokens) {
  WEIR_CHECK(tokens.size() == previous_.size() + 1, "{} tokens after {}", tokens.size(), previous_.size());
  previous_.push_back(kLeftOut);
  if (grams_ * 2 >= slots_.size()) return enlarge(tokens);
  add(tokens, static_cast<std::int32_t>(tokens.size()) - 1);
}

void NgramChains::add(std::span<const TokenId> tokens, std::int32_t position) {
  std::int32_t& previous = previous_[static_cast<std::size_t>(position)];
  previous = kLeftOut;
  if (position + 1 < n_) return;
  std::size_t slot = home(tokens, position);
  for (std::size_t probe = 0; probe < kMostProbes; ++probe, slot = (slot + 1) & (slots_.size() - 1)) {
    const std::int32_t latest = slots_[slot];
    if (latest != kNone && !same(tokens, latest, position)) continue;
    if (latest == kNone) ++grams_;
    previous = latest;
    slots_[slot] = position;
    return;
  }
}

// In the order of positions, so that the gram that came last can leave its slot empty: no search for another one passed over it.
void NgramChains::enlarge(std::span<const TokenId> tokens) {
  slots_.assign(std::max(kLeastSlots, slots_.size() * 2), kNone);
  grams_ = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) add(tokens, static_cast<std::int32_t>(i));
}

void NgramChains::pop(std::span<const TokenId> tokens) {
  WEIR_CHECK(!tokens.empty() && tokens.size() == previous_.size(), "{} tokens of {}", tokens.size(), previous_.size());
  const auto position = static_cast<std::int32_t>(tokens.size()) - 1;
  const std::int32_t previous = previous_.back();
  previous_.pop_back();
  if (previous == kLeftOut) return;
  std::size_t slot = home(tokens, position);
  while (slots_[slot] != position) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = previous;
  if (previous == kNone) --grams_;
}

void NgramChains::clear() {
  grams_ = 0;
  slots_.clear();
  previous_.clear();
}

}  // namespace weir::speculation
