// SPDX-License-Identifier: Apache-2.0
#include "kvcache/prefix_index.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace weir::kvcache {

PrefixIndex::PrefixIndex(std::int32_t block_tokens, std::int32_t pools, std::int32_t max_nodes, CacheEvents& events)
    : block_tokens_(block_tokens), pools_(pools), max_nodes_(max_nodes), events_(&events), by_hash_(0, Keyed{std::random_device()()}) {}

std::span<const TokenId> PrefixIndex::tokens(NodeId node) const {
  const auto count = static_cast<std::size_t>(block_tokens_);
  return std::span(tokens_).subspan(static_cast<std::size_t>(node.value) * count, count);
}

NodeId PrefixIndex::make(BlockHash hash, NodeId parent) {
  if (full()) return {};
  NodeId node;
  if (unused_.empty()) {
    node = NodeId(static_cast<std::int32_t>(nodes_.size()));
    nodes_.emplace_back();
    entries_.resize(entries_.size() + static_cast<std::size_t>(pools_), -1);
    tokens_.resize(tokens_.size() + static_cast<std::size_t>(block_tokens_));
  } else {
    node = unused_.back();
    unused_.pop_back();
  }
  at(node) = {.hash = hash, .parent = parent, .users = 0, .entries = 0, .prefilled = 0, .salt = {}, .live = true};
  by_hash_.emplace(hash, node);
  if (parent.valid()) use(parent);
  return node;
}

NodeId PrefixIndex::root(std::string_view salt) {
  const BlockHash hash = root_hash(salt);
  if (const auto found = by_hash_.find(hash); found != by_hash_.end()) {
    return is_root(found->second) && at(found->second).salt == salt ? found->second : NodeId();
  }
  const NodeId node = make(hash, {});
  if (node.valid()) at(node).salt = salt;
  return node;
}

bool PrefixIndex::matches(NodeId node, NodeId parent, std::span<const TokenId> tokens, std::int32_t prefilled) const {
  return at(node).parent == parent && at(node).prefilled == prefilled && std::ranges::equal(this->tokens(node), tokens);
}

NodeId PrefixIndex::find(NodeId parent, std::span<const TokenId> tokens, std::int32_t prefilled) const {
  const auto found = by_hash_.find(block_hash(at(parent).hash, tokens, prefilled));
  return found != by_hash_.end() && matches(found->second, parent, tokens, prefilled) ? found->second : NodeId();
}

NodeId PrefixIndex::find_or_add(NodeId parent, std::span<const TokenId> tokens, std::int32_t prefilled) {
  WEIR_CHECK(static_cast<std::int32_t>(tokens.size()) == block_tokens_, "{} tokens in a block of {}", tokens.size(), block_tokens_);
  const BlockHash hash = block_hash(at(parent).hash, tokens, prefilled);
  if (const auto found = by_hash_.find(hash); found != by_hash_.end())
    return matches(found->second, parent, tokens, prefilled) ? found->second : NodeId();
  const NodeId node = make(hash, parent);
  if (!node.valid()) return {};
  at(node).prefilled = prefilled;
  std::ranges::copy(tokens, tokens_.begin() + std::ptrdiff_t{node.value} * block_tokens_);
  return node;
}

void PrefixIndex::leave(NodeId node) {
  WEIR_CHECK(at(node).users > 0, "prefix node {} has no users", node.value);
  --at(node).users;
  remove_if_unused(node);
}

void PrefixIndex::remove_if_unused(NodeId node) {
  while (node.valid() && at(node).users == 0 && at(node).entries == 0) {
    const NodeId parent = at(node).parent;
    by_hash_.erase(at(node).hash);
    at(node) = {};
    unused_.push_back(node);
    if (parent.valid()) --at(parent).users;
    node = parent;
  }
}

CacheEvent PrefixIndex::stored(NodeId node) const {
  const auto ids = tokens(node);
  return {.kind = CacheEvent::Kind::kStored,
          .number = 0,
          .hash = hash(node),
          .parent = hash(parent(node)),
          .tokens = {ids.begin(), ids.end()},
          .resync = false};
}

void PrefixIndex::set_entry(NodeId node, std::int32_t pool, std::int32_t id) {
  std::int32_t& place = entries_[slot(node, pool)];
  WEIR_CHECK(place < 0, "prefix node {} has {} in pool {} already", node.value, place, pool);
  place = id;
  if (at(node).entries++ == 0 && events_->wanted()) events_->add(stored(node));
}

void PrefixIndex::clear_entry(NodeId node, std::int32_t pool) {
  std::int32_t& place = entries_[slot(node, pool)];
  WEIR_CHECK(place >= 0, "prefix node {} has nothing in pool {}", node.value, pool);
  place = -1;
  if (--at(node).entries > 0) return;
  events_->add({.kind = CacheEvent::Kind::kRemoved, .number = 0, .hash = hash(node), .parent = 0, .tokens = {}, .resync = false});
  remove_if_unused(node);
}

std::vector<CacheEvent> PrefixIndex::snapshot() const {
  std::vector<CacheEvent> events;
  std::vector<bool> told(nodes_.size(), false);
  std::vector<NodeId> chain;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].live) continue;
    for (NodeId n(static_cast<std::int32_t>(i)); n.valid() && !told[static_cast<std::size_t>(n.value)]; n = parent(n)) chain.push_back(n);
    for (; !chain.empty(); chain.pop_back()) {
      told[static_cast<std::size_t>(chain.back().value)] = true;
      if (at(chain.back()).entries > 0) events.push_back(stored(chain.back()));
    }
  }
  return events;
}

}  // namespace weir::kvcache
