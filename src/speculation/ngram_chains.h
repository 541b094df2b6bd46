// SPDX-License-Identifier: Apache-2.0
// For each position of a sequence, where the n tokens that end there stood last before. A hash table knows the latest place of each
// n-gram and nothing else (the tokens themselves are compared), so a place costs 8 to 20 bytes; the last positions can be taken back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace weir::speculation {

class NgramChains {
 public:
  static constexpr std::int32_t kNone = -1;

  explicit NgramChains(std::int32_t n) : n_(n) {}

  // `tokens` is the whole sequence each time; the position that is added or taken back is its last.
  void push(std::span<const TokenId> tokens);
  void pop(std::span<const TokenId> tokens);
  void clear();

  std::int32_t n() const { return n_; }
  // The position before this one that ends with the same n tokens, or kNone.
  std::int32_t previous(std::int32_t position) const {
    const std::int32_t place = previous_[static_cast<std::size_t>(position)];
    return place >= 0 ? place : kNone;
  }

 private:
  static constexpr std::int32_t kLeftOut = -2;

  std::size_t home(std::span<const TokenId> tokens, std::int32_t position) const;
  bool same(std::span<const TokenId> tokens, std::int32_t a, std::int32_t b) const;
  void add(std::span<const TokenId> tokens, std::int32_t position);
  void enlarge(std::span<const TokenId> tokens);

  std::int32_t n_;
  std::size_t grams_ = 0;               // different ones in the table
  std::vector<std::int32_t> slots_;     // the latest position of a gram, or kNone; a power of two, at most half full
  std::vector<std::int32_t> previous_;  // per position
};

}  // namespace weir::speculation
