// SPDX-License-Identifier: Apache-2.0
// Prefixes: finding the longest that every pool can serve, taking it over, and keeping what a sequence has computed. References
// are taken before anything is allocated, since an allocation may give up what was just found.
#include <algorithm>
#include <limits>
#include <utility>

#include "kvcache/cache.h"
#include "kvcache/disk_tier.h"

namespace weir::kvcache {

// A stored beginning of a sequence.
struct Cache::Match {
  explicit Match(std::int64_t prompt_tokens) : prompt(prompt_tokens) {}

  std::int64_t blocks = 0;
  std::int64_t prompt;
  std::vector<NodeId> nodes;      // of the blocks that the index knows: a chain from the first on
  std::vector<std::string> keys;  // of all blocks, with a tier
};

// Positions of a block that were computed as prefill; all, where the phases do not differ.
std::int32_t Cache::prefilled(std::int64_t prompt, std::int64_t block) const {
  const std::int64_t size = options_.block_tokens;
  return static_cast<std::int32_t>(options_.phases_differ ? std::clamp<std::int64_t>(prompt - block * size, 0, size) : size);
}

std::span<const TokenId> Cache::block_of(std::span<const TokenId> tokens, std::int64_t block) const {
  const auto size = static_cast<std::size_t>(options_.block_tokens);
  return tokens.subspan(static_cast<std::size_t>(block) * size, size);
}

bool Cache::open(SequenceCache& s, std::span<const TokenId> tokens, std::int64_t prompt, std::string_view salt, bool reuse) {
  WEIR_CHECK(!s.open_, "a sequence is opened twice");
  const NodeId root = options_.prefix_cache ? index_.root(salt) : NodeId();
  if (root.valid()) index_.use(root);
  if (root.valid() && options_.tier != nullptr) tier_key(root) = options_.tier->root_key(salt);
  return start(s, root, tokens, prompt, reuse);
}

// Takes over one use of `root`.
bool Cache::start(SequenceCache& s, NodeId root, std::span<const TokenId> tokens, std::int64_t prompt, bool reuse) {
  if (recurrent() && states_.available() == 0) {
    if (root.valid()) index_.leave(root);
    return false;
  }
  s.open_ = true;
  s.root_ = root;
  s.prompt_ = prompt;
  s.epoch_ = epoch_;
  const Match nothing(prompt);
  const bool search = reuse && root.valid();
  const bool taken = take(s, search ? match(root, tokens, prompt, options_.tier != nullptr) : nothing, tokens) ||
                     take(s, match(root, tokens, prompt, false), tokens) || take(s, nothing, tokens);
  WEIR_CHECK(taken, "a sequence cannot start from nothing");
  s.found_ = s.computed_;
  s.asked_ = static_cast<std::int64_t>(tokens.size());
  return true;
}

// Walks the tokens block by block and counts, for each pool, how many blocks up to here are stored without a gap.
Cache::Match Cache::match(NodeId root, std::span<const TokenId> tokens, std::int64_t prompt, bool use_tier) {
  Match m(prompt);
  std::vector<std::int64_t> run(pools(), 0);
  const std::int64_t most = (static_cast<std::int64_t>(tokens.size()) - 1) / options_.block_tokens;
  const auto broken = [&](std::int64_t blocks) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (!windowed(g) && run[g] < blocks) return true;
    }
    return false;
  };
  const auto usable = [&](std::int64_t blocks) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::int64_t end = blocks * options_.block_tokens, window = options_.groups[g].window;
      if (windowed(g) && run[g] < blocks - std::max<std::int64_t>(0, end - window + 1) / options_.block_tokens) return false;
    }
    return !recurrent() || run.back() > 0;
  };
  NodeId node = root;
  for (std::int64_t block = 0; block < most; ++block) {
    const auto ids = block_of(tokens, block);
    if (node.valid()) node = index_.find(node, ids, prefilled(prompt, block));
    if (!node.valid() && !use_tier) break;
    if (node.valid()) m.nodes.push_back(node);
    if (use_tier) {
      const std::string& before = block == 0 ? tier_key(root) : m.keys.back();
      m.keys.push_back(node.valid() ? tier_key(node) : DiskTier::block_key(before, ids, prefilled(prompt, block)));
    }
    for (std::size_t pool = 0; pool < pools(); ++pool) {
      const auto p = static_cast<std::int32_t>(pool);
      const bool stored = (node.valid() && index_.entry(node, p) >= 0) || (use_tier && options_.tier->contains(p, m.keys.back()));
      run[pool] = stored ? run[pool] + 1 : 0;
    }
    if (broken(block + 1)) break;
    if (usable(block + 1)) m.blocks = block + 1;
  }
  return m;
}

// All or nothing: false when a part that was found on disk turns out to be damaged, or has no room.
bool Cache::take(SequenceCache& s, const Match& m, std::span<const TokenId> tokens) {
  move_to(s, s.root_);
  bool good = true;
  for (std::int64_t block = 0; block < m.blocks && good; ++block) {
    const auto i = static_cast<std::size_t>(block);
    const NodeId next = i < m.nodes.size() ? m.nodes[i] : add_node(s.node_, block_of(tokens, block), prefilled(m.prompt, block));
    if ((good = next.valid())) move_to(s, next);
  }
  s.stored_ = m.blocks;
  // The state first: its slot may be the only one left. What the groups find is safe: their pools are others.
  good = good && (!recurrent() || take_state(s, m));
  for (std::size_t g = 0; g < groups_.size() && good; ++g) good = take_blocks(s, g, m);
  if (good) {
    s.computed_ = s.planned_ = m.blocks * options_.block_tokens;
    return true;
  }
  for (SequenceBlocks& blocks : s.groups_) blocks.free();
  if (s.state_.valid()) states_.release(std::exchange(s.state_, StateSlot()));
  return false;
}

bool Cache::take_blocks(SequenceCache& s, std::size_t group, const Match& m) {
  std::vector<NodeId> nodes(static_cast<std::size_t>(m.blocks));  // from the tip back
  NodeId node = s.node_;
  for (auto i = nodes.size(); i-- > 0; node = index_.parent(node)) nodes[i] = node;
  std::vector<BlockId> ids(nodes.size());
  const auto first = static_cast<std::size_t>(s.groups_[group].first_seen(m.blocks * options_.block_tokens));
  const auto pool = static_cast<std::int32_t>(group);
  for (std::size_t i = first; i < ids.size(); ++i) {
    ids[i] = BlockId(index_.entry(nodes[i], pool));
    if (ids[i].valid()) groups_[group].add_reference(ids[i]);
  }
  bool good = true;
  for (std::size_t i = first; i < ids.size() && good; ++i) {
    if (ids[i].valid()) continue;
    const auto block = groups_[group].allocate();
    if (!(good = block.has_value())) break;
    ids[i] = *block;
    good = load(group, block->value, m.keys[i]);
    if (good) keep(group, block->value, nodes[i]);
  }
  if (good) {
    s.groups_[group].adopt(ids);
    return true;
  }
  for (const BlockId id : ids) {
    if (id.valid()) groups_[group].release(id);
  }
  return false;
}

// A live slot with the state after the match.
bool Cache::take_state(SequenceCache& s, const Match& m) {
  const std::size_t pool = groups_.size();
  StateSlot kept(m.blocks > 0 ? index_.entry(s.node_, static_cast<std::int32_t>(pool)) : -1);
  const bool only_one = kept.valid() && states_.available() == 1 && states_.references(kept) == 0;
  if (only_one) {  // it becomes the live one: the next that allocate() gives
    evict(pool, kept.value);
    states_.forget(kept);
  } else if (kept.valid()) {
    states_.add_reference(kept);
  }
  const auto slot = states_.allocate();
  if (kept.valid() && !only_one) states_.release(kept);
  if (!slot) return false;
  s.state_ = *slot;
  if (m.blocks == 0) {
    add_op(MemoryOp::Kind::kClear, pool, -1, s.state_.value);
  } else if (!kept.valid()) {
    return load(pool, s.state_.value, m.keys[static_cast<std::size_t>(m.blocks) - 1]);
  } else if (!only_one) {
    add_op(MemoryOp::Kind::kCopy, pool, kept.value, s.state_.value);
  }
  return true;
}

bool Cache::load(std::size_t pool, std::int32_t to, const std::string& key) {
  auto bytes = options_.tier->load(static_cast<std::int32_t>(pool), key);
  if (!bytes) return false;
  add_op(MemoryOp::Kind::kLoad, pool, -1, to).bytes = std::move(*bytes);
  ++stats_.loaded_blocks;
  return true;
}

NodeId Cache::add_node(NodeId parent, std::span<const TokenId> tokens, std::int32_t prefilled) {
  if (index_.full() && !index_.find(parent, tokens, prefilled).valid()) {
    // Nodes are scarcer than entries only with very long, mostly given up prefixes; then some of the oldest content goes.
    for (int tries = 0; index_.full() && tries < 8; ++tries) {
      for (BlockAllocator& group : groups_) group.evict_oldest();
      states_.evict_oldest();
    }
  }
  const NodeId node = index_.find_or_add(parent, tokens, prefilled);
  if (options_.tier != nullptr && node.valid() && index_.is_new(node)) {
    std::string key = DiskTier::block_key(tier_key(parent), tokens, prefilled);
    tier_key(node) = std::move(key);
  }
  return node;
}

std::string& Cache::tier_key(NodeId node) {
  const auto at = static_cast<std::size_t>(node.value);
  if (tier_keys_.size() <= at) tier_keys_.resize(at + 1);
  return tier_keys_[at];
}

void Cache::move_to(SequenceCache& s, NodeId node) {
  if (node.valid()) index_.use(node);
  if (s.node_.valid()) index_.leave(s.node_);
  s.node_ = node;
}

void Cache::keep(std::size_t pool, std::int32_t id, NodeId node) {
  if (pool < groups_.size()) {
    groups_[pool].keep(BlockId(id));
  } else {
    states_.keep(StateSlot(id));
  }
  owners_[pool][static_cast<std::size_t>(id)] = node;
  index_.set_entry(node, static_cast<std::int32_t>(pool), id);
}

// The pool gives up content that it kept: the memory saves it first, if there is where to.
bool Cache::evict_one() {
  for (BlockAllocator& group : groups_) {
    if (group.evict_oldest()) return true;
  }
  return states_.evict_oldest();
}

void Cache::evict(std::size_t pool, std::int32_t id) {
  const NodeId node = owners_[pool][static_cast<std::size_t>(id)];
  if (options_.tier != nullptr) add_op(MemoryOp::Kind::kSave, pool, id, -1).key = tier_key(node);
  index_.clear_entry(node, static_cast<std::int32_t>(pool));
  ++stats_.evicted;
}

void Cache::store_blocks(SequenceCache& s, std::span<const TokenId> tokens) {
  if (s.epoch_ != epoch_) move_to(s, {});
  while (s.node_.valid() && (s.stored_ + 1) * options_.block_tokens <= s.computed_) {
    const NodeId node = add_node(s.node_, block_of(tokens, s.stored_), prefilled(s.prompt_, s.stored_));
    move_to(s, node);  // nothing behind a block that cannot be stored can be found either
    if (!node.valid()) return;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const BlockId block = s.groups_[g].blocks()[static_cast<std::size_t>(s.stored_)];
      const bool known = index_.entry(node, static_cast<std::int32_t>(g)) >= 0;
      if (block.valid() && !known) keep(g, block.value, node);
    }
    ++s.stored_;
  }
}

bool Cache::is_checkpoint(const SequenceCache& s, std::int64_t position) const {
  const std::int64_t block = options_.block_tokens;
  return position % (block * options_.checkpoint_blocks) == 0 || position == (s.prompt_ - 1) / block * block;
}

std::int64_t Cache::next_checkpoint(const SequenceCache& s, std::int64_t from) const {
  if (!recurrent() || !s.node_.valid()) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t block = options_.block_tokens, step = block * options_.checkpoint_blocks;
  const std::int64_t last = (s.prompt_ - 1) / block * block;
  const std::int64_t next = (from / step + 1) * step;
  return last > from ? std::min(last, next) : next;
}

void Cache::store_state(SequenceCache& s) {
  const std::size_t pool = groups_.size();
  if (!recurrent() || !s.node_.valid() || s.stored_ == 0 || s.stored_ * options_.block_tokens != s.computed_) return;
  if (!is_checkpoint(s, s.computed_) || index_.entry(s.node_, static_cast<std::int32_t>(pool)) >= 0) return;
  const auto slot = states_.allocate();
  if (!slot) return;
  add_op(MemoryOp::Kind::kCopy, pool, s.state_.value, slot->value);
  keep(pool, slot->value, s.node_);
  states_.release(*slot);
}

void Cache::forget_all() {
  clear();
  ops_.clear();
}

void Cache::clear() {
  ++epoch_;
  const auto forget = [this](auto& pool, std::size_t number) {
    for (std::int32_t id = 0; id < pool.capacity(); ++id) {
      const auto typed = decltype(pool.allocate().value())(id);
      if (!pool.kept(typed)) continue;
      index_.clear_entry(owners_[number][static_cast<std::size_t>(id)], static_cast<std::int32_t>(number));
      pool.forget(typed);
    }
  };
  for (std::size_t g = 0; g < groups_.size(); ++g) forget(groups_[g], g);
  forget(states_, groups_.size());
  events_.add({.kind = CacheEvent::Kind::kCleared, .number = 0, .hash = 0, .parent = 0, .tokens = {}, .resync = false});
}

}  // namespace weir::kvcache
