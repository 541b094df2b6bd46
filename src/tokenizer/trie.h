// SPDX-License-Identifier: Apache-2.0
// A trie over token texts whose edges lie in one flat hash table: one probe per byte, whatever the fan-out.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace weir::tokenizer {

class Trie {
 public:
  static constexpr std::int32_t kRoot = 0, kNone = -1;

  Trie() : tokens_(1, kNone), edges_(16) {}

  // A text added again keeps the later token.
  void add(std::string_view text, TokenId token);
  // The node below, or kNone.
  std::int32_t child(std::int32_t node, std::uint8_t byte) const {
    const std::uint64_t key = key_of(node, byte);
    const std::size_t mask = edges_.size() - 1;
    for (std::size_t slot = slot_of(key, mask);; slot = (slot + 1) & mask) {
      if (edges_[slot].key == key) return edges_[slot].node;
      if (edges_[slot].key == 0) return kNone;
    }
  }
  // The token that ends at a node, or kNone.
  TokenId token(std::int32_t node) const { return tokens_[static_cast<std::size_t>(node)]; }

  struct Longest {
    TokenId token = kNone;
    std::size_t length = 0;
  };
  // The longest token that the text starts with, walking on from a node.
  Longest longest(std::string_view text, std::int32_t from = kRoot) const;
  // The node that a text leads to, or kNone.
  std::int32_t walk(std::string_view text) const;

 private:
  struct Edge {
    std::uint64_t key = 0;
    std::int32_t node = kNone;
  };
  static std::uint64_t key_of(std::int32_t node, std::uint8_t byte) { return (static_cast<std::uint64_t>(node) << 8 | byte) + 1; }
  static std::size_t slot_of(std::uint64_t key, std::size_t mask) {
    key *= 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(key >> 32) & mask;
  }
  void grow();

  std::vector<TokenId> tokens_;
  std::vector<Edge> edges_;  // a power of two, at most half full
};

}  // namespace weir::tokenizer
