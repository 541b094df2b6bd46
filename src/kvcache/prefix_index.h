// SPDX-License-Identifier: Apache-2.0
// Which content lies in which block, by the tokens that made it: a tree whose nodes are whole blocks of tokens, found by chained
// hash (vLLM's automatic prefix caching) and then compared: the parent by identity, the tokens one by one, so that no collision
// of hashes gives a wrong hit. A node has one entry per pool: a block for each group of layers, a slot for recurrent state.
// Nodes live while they have an entry, a child or a user.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "kvcache/block_hash.h"
#include "kvcache/cache_events.h"

namespace weir::kvcache {

using NodeId = Id<struct PrefixNodeTag>;

class PrefixIndex {
 public:
  PrefixIndex(std::int32_t block_tokens, std::int32_t pools, std::int32_t max_nodes, CacheEvents& events);

  // The node before the first block of all sequences with this salt. Invalid when there is no room or its hash is taken.
  NodeId root(std::string_view salt);
  // The child of `parent` with these tokens (one block), or an invalid id.
  NodeId find(NodeId parent, std::span<const TokenId> tokens, std::int32_t prefilled) const;
  // The same, made if need be. Invalid when there is no room or another node has the hash. The new node has no user yet: use() it
  // before anything else happens.
  NodeId find_or_add(NodeId parent, std::span<const TokenId> tokens, std::int32_t prefilled);

  void use(NodeId node) { ++at(node).users; }
  void leave(NodeId node);  // the node goes if that was all that held it

  // Entries: an id of the pool, or -1.
  std::int32_t entry(NodeId node, std::int32_t pool) const { return entries_[slot(node, pool)]; }
  void set_entry(NodeId node, std::int32_t pool, std::int32_t id);
  void clear_entry(NodeId node, std::int32_t pool);  // the node may go with it

  NodeId parent(NodeId node) const { return at(node).parent; }
  BlockHash hash(NodeId node) const { return at(node).hash; }
  std::span<const TokenId> tokens(NodeId node) const;
  const std::string& salt(NodeId root) const { return at(root).salt; }
  std::int32_t prefilled(NodeId node) const { return at(node).prefilled; }
  bool is_root(NodeId node) const { return !at(node).parent.valid(); }
  bool is_new(NodeId node) const { return at(node).users == 0 && at(node).entries == 0; }
  bool full() const { return unused_.empty() && static_cast<std::int32_t>(nodes_.size()) >= max_nodes_; }
  std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size() - unused_.size()); }

  // A kStored event for each block that has an entry, parents first.
  std::vector<CacheEvent> snapshot() const;

 private:
  struct Node {
    BlockHash hash = 0;
    NodeId parent;
    std::int32_t users = 0;    // children and sequences
    std::int32_t entries = 0;  // pools with an entry
    std::int32_t prefilled = 0;
    std::string salt;  // of a root
    bool live = false;
  };
  // Clients choose tokens, and the hash function is public: an unknown factor keeps them from filling one bucket.
  struct Keyed {
    std::uint64_t key;
    std::size_t operator()(BlockHash hash) const { return fold_multiply(hash ^ key, 0x9fb21c651e98df25); }
  };

  const Node& at(NodeId node) const { return nodes_[static_cast<std::size_t>(node.value)]; }
  Node& at(NodeId node) { return nodes_[static_cast<std::size_t>(node.value)]; }
  std::size_t slot(NodeId node, std::int32_t pool) const {
    return static_cast<std::size_t>(node.value) * static_cast<std::size_t>(pools_) + static_cast<std::size_t>(pool);
  }
  bool matches(NodeId node, NodeId parent, std::span<const TokenId> tokens, std::int32_t prefilled) const;
  NodeId make(BlockHash hash, NodeId parent);
  void remove_if_unused(NodeId node);
  CacheEvent stored(NodeId node) const;

  std::int32_t block_tokens_, pools_, max_nodes_;
  CacheEvents* events_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> entries_;  // [node, pool]
  std::vector<TokenId> tokens_;        // [node, block_tokens]
  std::vector<NodeId> unused_;
  std::unordered_map<BlockHash, NodeId, Keyed> by_hash_;
};

}  // namespace weir::kvcache
