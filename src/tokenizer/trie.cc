// SPDX-License-Identifier: Apache-2.0
// Node n is reached by exactly one edge, so there are as many edges as nodes less the root.
#include "tokenizer/trie.h"

namespace weir::tokenizer {

void Trie::grow() {
  std::vector<Edge> old(edges_.size() * 2);
  old.swap(edges_);
  const std::size_t mask = edges_.size() - 1;
  for (const Edge& edge : old) {
    if (edge.key == 0) continue;
    std::size_t slot = slot_of(edge.key, mask);
    while (edges_[slot].key != 0) slot = (slot + 1) & mask;
    edges_[slot] = edge;
  }
}

void Trie::add(std::string_view text, TokenId token) {
  std::int32_t node = kRoot;
  for (char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    std::int32_t next = child(node, byte);
    if (next == kNone) {
      if (2 * tokens_.size() > edges_.size()) grow();
      next = static_cast<std::int32_t>(tokens_.size());
      tokens_.push_back(kNone);
      const std::size_t mask = edges_.size() - 1;
      std::size_t slot = slot_of(key_of(node, byte), mask);
      while (edges_[slot].key != 0) slot = (slot + 1) & mask;
      edges_[slot] = {key_of(node, byte), next};
    }
    node = next;
  }
  tokens_[static_cast<std::size_t>(node)] = token;
}

Trie::Longest Trie::longest(std::string_view text, std::int32_t from) const {
  Longest best;
  std::int32_t node = from;
  for (std::size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<std::uint8_t>(text[i]));
    if (node == kNone) break;
    if (token(node) != kNone) best = {token(node), i + 1};
  }
  return best;
}

std::int32_t Trie::walk(std::string_view text) const {
  std::int32_t node = kRoot;
  for (char c : text) {
    node = child(node, static_cast<std::uint8_t>(c));
    if (node == kNone) break;
  }
  return node;
}

}  // namespace weir::tokenizer
