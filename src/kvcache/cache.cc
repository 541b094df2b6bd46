// SPDX-License-Identifier: Apache-2.0
// The running of sequences: room, what stays of a step, forks and ends. Finding and keeping prefixes is in cache_prefix.cc.
#include "kvcache/cache.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace weir::kvcache {
namespace {

// Nodes outlive their entries while longer prefixes need them; four for each entry are plenty.
std::int32_t most_nodes(const CacheOptions& options) {
  std::int64_t entries = options.state_slots;
  for (const GroupLayout& group : options.groups) entries += group.blocks;
  return static_cast<std::int32_t>(std::min<std::int64_t>(4 * entries + 1024, 1 << 26));
}

}  // namespace

Status check(const CacheOptions& options) {
  if (options.block_tokens < 1 || options.block_tokens > 4096)
    return fail(ErrorCode::kInvalidArgument, "KV blocks of {} tokens: 1 to 4096 are possible", options.block_tokens);
  if (options.groups.size() > 16) return fail(ErrorCode::kInvalidArgument, "{} groups of layers, 16 at most", options.groups.size());
  for (const GroupLayout& group : options.groups) {
    if (group.blocks < 0 || group.blocks > 1 << 24 || group.window < 0)
      return fail(ErrorCode::kInvalidArgument, "a cache of {} blocks with a window of {}", group.blocks, group.window);
  }
  if (options.state_slots < 0 || options.state_slots > 1 << 24 || options.checkpoint_blocks < 1)
    return fail(ErrorCode::kInvalidArgument, "{} state slots, kept every {} blocks", options.state_slots, options.checkpoint_blocks);
  return {};
}

SequenceCache::SequenceCache(Cache& cache) : cache_(&cache) {
  groups_.reserve(cache.groups_.size());
  for (std::size_t g = 0; g < cache.groups_.size(); ++g) groups_.emplace_back(cache.groups_[g], cache.options_.groups[g].window);
}

SequenceCache::~SequenceCache() { cache_->close(*this); }

Cache::Cache(CacheOptions options)
    : options_(std::move(options)),
      events_(options_.event_limit),
      index_(options_.block_tokens, static_cast<std::int32_t>(options_.groups.size()) + 1, most_nodes(options_), events_),
      states_(options_.state_slots) {
  const Status status = check(options_);
  WEIR_CHECK(status.has_value(), "{}", status.error().message);
  groups_.reserve(options_.groups.size());
  for (std::size_t g = 0; g < options_.groups.size(); ++g) {
    groups_.emplace_back(options_.groups[g].blocks, options_.block_tokens);
    groups_[g].on_evict([this, g](BlockId id) { evict(g, id.value); });
    owners_.emplace_back(static_cast<std::size_t>(options_.groups[g].blocks));
  }
  states_.on_evict([this](StateSlot slot) { evict(groups_.size(), slot.value); });
  owners_.emplace_back(static_cast<std::size_t>(options_.state_slots));
}

Cache::~Cache() = default;

void Cache::close(SequenceCache& s) {
  if (!s.open_) return;
  for (SequenceBlocks& blocks : s.groups_) blocks.free();
  if (s.state_.valid()) states_.release(std::exchange(s.state_, StateSlot()));
  if (s.snapshot_.valid()) states_.release(std::exchange(s.snapshot_, StateSlot()));
  move_to(s, {});
  if (s.root_.valid()) index_.leave(std::exchange(s.root_, NodeId()));
  s.stored_ = s.prompt_ = s.computed_ = s.found_ = s.planned_ = s.asked_ = 0;
  s.open_ = false;
}

std::int64_t Cache::reach(const SequenceCache& s) const {
  std::int64_t reach = std::numeric_limits<std::int64_t>::max();
  for (const SequenceBlocks& blocks : s.groups_) reach = std::min(reach, blocks.reach());
  return reach;
}

void Cache::grow(SequenceCache& s, std::int64_t end) {
  for (std::size_t g = 0; g < s.groups_.size(); ++g) {
    if (s.groups_[g].grow_in_place(end)) continue;
    const auto copy = s.groups_[g].grow(end);
    WEIR_CHECK(copy.has_value(), "{}", copy.error().message);
    if (!*copy) continue;
    add_op(MemoryOp::Kind::kCopy, g, (*copy)->from.value, (*copy)->to.value).tokens = (*copy)->tokens;
    ++stats_.copied_blocks;
  }
  s.planned_ = end;
  if (s.asked_ == 0) return;
  stats_.asked_tokens += std::exchange(s.asked_, 0);
  stats_.found_tokens += s.found_;
}

bool Cache::keep_state(SequenceCache& s) {
  if (!recurrent()) return true;
  const auto slot = states_.allocate();
  if (!slot) return false;
  s.snapshot_ = *slot;
  add_op(MemoryOp::Kind::kCopy, groups_.size(), s.state_.value, s.snapshot_.value);
  return true;
}

void Cache::commit(SequenceCache& s, std::span<const TokenId> tokens, std::int64_t end) {
  WEIR_CHECK(s.open_ && end >= s.computed_ && end <= s.planned_, "{} of {} positions after {}", end, s.planned_, s.computed_);
  if (end < s.planned_ && recurrent()) {
    WEIR_CHECK(s.snapshot_.valid(), "rows are taken back and the state before them was not kept");
    std::swap(s.state_, s.snapshot_);
    end = s.computed_;
  }
  if (s.snapshot_.valid()) states_.release(std::exchange(s.snapshot_, StateSlot()));
  for (SequenceBlocks& blocks : s.groups_) blocks.truncate(end);
  s.computed_ = s.planned_ = end;
  store_blocks(s, tokens);
  for (SequenceBlocks& blocks : s.groups_) blocks.release_unseen(end);
  store_state(s);
}

void Cache::rollback(SequenceCache& s, std::span<const TokenId> tokens, std::int64_t end) {
  WEIR_CHECK(s.open_ && end >= 0 && end <= s.computed_, "back to {} from {}", end, s.computed_);
  if (end == s.computed_) return;
  const bool lost = std::ranges::any_of(s.groups_, [&](const SequenceBlocks& blocks) { return blocks.first_seen(end) < blocks.unseen(); });
  if (recurrent() || lost) {  // from the nearest kept state and window, or from the start
    const NodeId root = s.root_;
    const std::int64_t prompt = s.prompt_, found = s.found_;
    if (root.valid()) index_.use(root);
    close(s);
    const bool open = start(s, root, tokens.first(static_cast<std::size_t>(end) + 1), prompt, true);
    WEIR_CHECK(open, "a state slot was given back and none is available");
    s.found_ = std::min(found, s.computed_);
    s.asked_ = 0;
    return;
  }
  for (SequenceBlocks& blocks : s.groups_) blocks.truncate(end);
  s.computed_ = s.planned_ = end;
  while (s.stored_ * options_.block_tokens > end) {
    --s.stored_;
    if (s.node_.valid()) move_to(s, index_.parent(s.node_));
  }
}

bool Cache::fork(SequenceCache& parent, SequenceCache& child) {
  WEIR_CHECK(parent.open_ && !child.open_, "a fork needs an open parent and an empty child");
  WEIR_CHECK(parent.planned_ == parent.computed_, "a fork while rows run");
  if (recurrent()) {
    const auto slot = states_.allocate();
    if (!slot) return false;
    child.state_ = *slot;
    add_op(MemoryOp::Kind::kCopy, groups_.size(), parent.state_.value, child.state_.value);
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) child.groups_[g] = parent.groups_[g].fork();
  if ((child.root_ = parent.root_).valid()) index_.use(child.root_);
  move_to(child, parent.node_);
  child.stored_ = parent.stored_;
  child.prompt_ = parent.prompt_;
  child.computed_ = child.planned_ = parent.computed_;
  child.found_ = parent.found_;
  child.epoch_ = parent.epoch_;
  child.open_ = true;
  return true;
}

std::int64_t Cache::demand(std::size_t pool, std::int64_t tokens) const {
  if (pool == groups_.size()) return recurrent() ? 1 : 0;
  const std::int64_t all = groups_[pool].blocks_for(tokens);
  if (!windowed(pool)) return all;
  // What a row sees and a block of rows may begin and end anywhere in a block.
  return std::min(all, groups_[pool].blocks_for(options_.groups[pool].window - 1 + options_.block_tokens) + 1);
}

std::int64_t Cache::held(const SequenceCache& s, std::size_t pool) const {
  return pool < groups_.size() ? s.groups_[pool].held() : (s.state_.valid() ? 1 : 0);
}

std::int64_t Cache::available(std::size_t pool) const { return pool < groups_.size() ? groups_[pool].available() : states_.available(); }

std::int64_t Cache::missing(const SequenceCache& s, std::size_t pool, std::int64_t tokens) const {
  return std::max<std::int64_t>(0, demand(pool, tokens) - held(s, pool));
}

Status Cache::check_fits(std::int64_t tokens) const {
  for (std::size_t pool = 0; pool < pools(); ++pool) {
    const std::int64_t capacity = pool < groups_.size() ? groups_[pool].capacity() : states_.capacity();
    if (const std::int64_t needed = demand(pool, tokens); needed > capacity)
      return fail(ErrorCode::kInvalidArgument, "{} tokens need {} {}, and there are {}: ask for fewer tokens, or give the cache more",
                  tokens, needed, pool < groups_.size() ? "KV cache blocks" : "recurrent state slots", capacity);
  }
  return {};
}

void Cache::promise(const SequenceCache& s, std::int64_t tokens, Promises& promises) const {
  promises.resize(pools());
  for (std::size_t pool = 0; pool < pools(); ++pool) promises[pool] += missing(s, pool, tokens);
}

bool Cache::fits(const SequenceCache& s, std::int64_t tokens, const Promises& promises) const {
  for (std::size_t pool = 0; pool < pools(); ++pool) {
    if (missing(s, pool, tokens) > available(pool) - (pool < promises.size() ? promises[pool] : 0)) return false;
  }
  return true;
}

std::int64_t Cache::slack(const Promises& promises) const {
  std::int64_t slack = 0;
  for (std::size_t pool = 0; pool < pools(); ++pool) slack += available(pool) - (pool < promises.size() ? promises[pool] : 0);
  return slack;
}

void Cache::take_ops(std::vector<MemoryOp>& ops) {
  ops.clear();
  ops.swap(ops_);
}

MemoryOp& Cache::add_op(MemoryOp::Kind kind, std::size_t pool, std::int32_t from, std::int32_t to) {
  MemoryOp& op = ops_.emplace_back();
  op.kind = kind;
  op.pool = static_cast<std::int32_t>(pool);
  op.from = from;
  op.to = to;
  return op;
}

CacheStats Cache::stats() const {
  CacheStats stats = stats_;
  for (const BlockAllocator& group : groups_) stats.pools.push_back({group.capacity(), group.used(), group.cached(), group.free()});
  stats.pools.push_back({states_.capacity(), states_.used(), states_.cached(), states_.free()});
  stats.nodes = index_.size();
  return stats;
}

}  // namespace weir::kvcache
