// SPDX-License-Identifier: Apache-2.0
// All books of the KV cache and the recurrent states in one place: what each sequence holds, what is shared, what is kept for
// later prompts with the same beginning. Several pools (groups of layers: full attention, sliding windows; state slots) move
// together: a prefix is a hit only up to where every pool has what a row behind it needs. What the memory itself has to do
// comes out as a list of MemoryOps. One thread owns it all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "kvcache/block_allocator.h"
#include "kvcache/cache_events.h"
#include "kvcache/memory_op.h"
#include "kvcache/prefix_index.h"
#include "kvcache/sequence_blocks.h"
#include "kvcache/state_slots.h"

namespace weir::kvcache {

struct GroupLayout {
  std::int32_t blocks = 0;
  std::int32_t window = 0;  // of these layers' attention; 0 = every position before
};

struct CacheOptions {
  std::int32_t block_tokens = 32;
  std::vector<GroupLayout> groups;     // none for a model without attention
  std::int32_t state_slots = 0;        // 0 for a model without recurrent layers; else live states, checkpoints and snapshots together
  std::int32_t checkpoint_blocks = 8;  // a state is kept every so many blocks, and at the last border inside a prompt
  bool prefix_cache = true;
  bool phases_differ = true;    // prefill and decode rows give different bits: a block serves only the phase that made it
  std::size_t event_limit = 0;  // events queued for a follower; 0 = nobody follows
  DiskTier* tier = nullptr;     // must outlive the cache
};

Status check(const CacheOptions& options);

class Cache;

// What one sequence holds: tables and a state. Empty until Cache::open; gives everything back when it ends.
class SequenceCache {
 public:
  explicit SequenceCache(Cache& cache);  // must outlive it
  ~SequenceCache();
  SequenceCache(const SequenceCache&) = delete;
  SequenceCache& operator=(const SequenceCache&) = delete;

  bool is_open() const { return open_; }
  std::int64_t computed() const { return computed_; }  // positions [0, computed) are in the memory
  std::int64_t found() const { return found_; }        // of these, how many open() found
  std::span<const BlockId> table(std::size_t group) const { return groups_[group].blocks(); }
  StateSlot state() const { return state_; }  // as it is after `computed` positions; invalid without recurrent layers

 private:
  friend class Cache;
  Cache* cache_;
  std::vector<SequenceBlocks> groups_;
  StateSlot state_, snapshot_;  // the snapshot: as the state was at `computed`, while rows run that may be taken back
  NodeId root_, node_;          // node_: of the last stored block; invalid when the rest cannot be stored
  std::int64_t stored_ = 0;     // blocks with a node
  std::int64_t prompt_ = 0, computed_ = 0, found_ = 0, planned_ = 0;  // planned_: positions that grow() made room for
  std::int64_t epoch_ = 0;                                            // of the cache when it was opened
  std::int64_t asked_ = 0;                                            // tokens at the start, until they are counted
  bool open_ = false;
};

struct PoolStats {
  std::int32_t capacity = 0, used = 0, cached = 0, free = 0;
};

struct CacheStats {
  std::vector<PoolStats> pools;    // groups, then states
  std::int64_t asked_tokens = 0;   // of all sequences that began to run
  std::int64_t found_tokens = 0;   // of these, in memory or on disk
  std::int64_t loaded_blocks = 0;  // from disk
  std::int64_t copied_blocks = 0;  // on write
  std::int64_t evicted = 0;        // blocks and states whose content gave way
  std::int32_t nodes = 0;
};

class Cache {
 public:
  explicit Cache(CacheOptions options);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Starts a sequence with the longest stored beginning of `tokens`, at most all but the last: its row must run for logits.
  // Positions from `prompt` on are decode rows. `reuse` = false looks for nothing (all rows must run, for prompt logprobs). False
  // when no state slot is available; the sequence is still empty then.
  bool open(SequenceCache& sequence, std::span<const TokenId> tokens, std::int64_t prompt, std::string_view salt, bool reuse = true);
  void close(SequenceCache& sequence);

  // The position up to which rows can run with what is available.
  std::int64_t reach(const SequenceCache& sequence) const;
  // Makes room for rows [computed, end), end <= reach().
  void grow(SequenceCache& sequence, std::int64_t end);
  // Before rows of which some may be taken back: keeps the recurrent state. False when no slot is available.
  bool keep_state(SequenceCache& sequence);
  // The rows have run and positions [0, end) of `tokens` stay; fewer than grow() made room for means that the rest is taken back.
  // With recurrent layers computed() may then fall behind `end`, to where the state was kept: those rows run again.
  void commit(SequenceCache& sequence, std::span<const TokenId> tokens, std::int64_t end);
  // The next position after `from` at which rows should end for the state to be kept there; INT64_MAX without recurrent layers.
  std::int64_t next_checkpoint(const SequenceCache& sequence, std::int64_t from) const;
  // Goes back to `end` positions of `tokens`, or to fewer if what was there before is gone.
  void rollback(SequenceCache& sequence, std::span<const TokenId> tokens, std::int64_t end);
  // `child` (empty) becomes a second sequence at the same position. False when no state slot is available.
  bool fork(SequenceCache& parent, SequenceCache& child);

  // Accounting for whoever decides what to run. Promises: by pool, what sequences may still take.
  using Promises = std::vector<std::int64_t>;
  // Whether a sequence alone could ever reach `tokens`; kInvalidArgument with what is missing.
  Status check_fits(std::int64_t tokens) const;
  // Adds what the sequence takes at most until it holds `tokens`.
  void promise(const SequenceCache& sequence, std::int64_t tokens, Promises& promises) const;
  bool fits(const SequenceCache& sequence, std::int64_t tokens, const Promises& promises) const;
  std::int64_t slack(const Promises& promises) const;                // available beyond the promises, over all pools
  std::int64_t demand(std::size_t pool, std::int64_t tokens) const;  // held at most by a sequence that reaches `tokens`
  std::int64_t held(const SequenceCache& sequence, std::size_t pool) const;

  // What the memory has to do before the next rows run; the list is the caller's from then on.
  void take_ops(std::vector<MemoryOp>& ops);

  // The cached block or state that was used longest ago gives way, with the operations that follow from it: for emptying the memory into
  // the second tier before a stop. False when nothing is cached.
  bool evict_one();
  void clear();  // forgets all prefixes: for when their content is of no use any more
  // The same, and what the memory has still to do; no sequence is open: for when the memory is in doubt.
  void forget_all();
  std::vector<CacheEvent> drain_events(std::size_t most = SIZE_MAX) { return events_.drain(most); }
  std::vector<CacheEvent> snapshot_events() const { return index_.snapshot(); }
  CacheStats stats() const;
  const CacheOptions& options() const { return options_; }

 private:
  friend class SequenceCache;
  struct Match;

  bool recurrent() const { return options_.state_slots > 0; }
  std::size_t pools() const { return groups_.size() + 1; }
  bool windowed(std::size_t pool) const { return pool < groups_.size() && options_.groups[pool].window > 0; }
  std::int64_t available(std::size_t pool) const;
  std::int64_t missing(const SequenceCache& sequence, std::size_t pool, std::int64_t tokens) const;
  std::int32_t prefilled(std::int64_t prompt, std::int64_t block) const;
  std::span<const TokenId> block_of(std::span<const TokenId> tokens, std::int64_t block) const;

  bool start(SequenceCache& sequence, NodeId root, std::span<const TokenId> tokens, std::int64_t prompt, bool reuse);
  Match match(NodeId root, std::span<const TokenId> tokens, std::int64_t prompt, bool use_tier);
  bool take(SequenceCache& sequence, const Match& match, std::span<const TokenId> tokens);
  bool take_blocks(SequenceCache& sequence, std::size_t group, const Match& match);
  bool take_state(SequenceCache& sequence, const Match& match);
  bool load(std::size_t pool, std::int32_t to, const std::string& key);

  void store_blocks(SequenceCache& sequence, std::span<const TokenId> tokens);
  void store_state(SequenceCache& sequence);
  bool is_checkpoint(const SequenceCache& sequence, std::int64_t position) const;
  NodeId add_node(NodeId parent, std::span<const TokenId> tokens, std::int32_t prefilled);
  std::string& tier_key(NodeId node);
  void move_to(SequenceCache& sequence, NodeId node);
  void keep(std::size_t pool, std::int32_t id, NodeId node);
  void evict(std::size_t pool, std::int32_t id);
  MemoryOp& add_op(MemoryOp::Kind kind, std::size_t pool, std::int32_t from, std::int32_t to);

  CacheOptions options_;
  CacheEvents events_;
  PrefixIndex index_;
  std::vector<BlockAllocator> groups_;
  StateSlots states_;
  std::vector<std::vector<NodeId>> owners_;  // of each kept id, by pool
  std::vector<std::string> tier_keys_;       // of each node, when there is a tier
  std::vector<MemoryOp> ops_;
  CacheStats stats_;
  std::int64_t epoch_ = 0;
};

}  // namespace weir::kvcache
