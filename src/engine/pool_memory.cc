// SPDX-License-Identifier: Apache-2.0
#include "engine/pool_memory.h"

#include <algorithm>

#include "base/check.h"

namespace weir::engine {
namespace {

constexpr std::int64_t kMostBlocks = 1 << 24;  // kvcache::check

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// How many blocks and states a number of tokens takes.
class Sizing {
 public:
  Sizing(const model::Traits& traits, const CacheBudget& budget)
      : budget_(budget), groups_(model::kv_groups(traits)), recurrent_(traits.has_state()) {
    for (const model::KvGroup& group : groups_)
      block_bytes_.push_back(model::SequenceMemory::bytes_per_block(traits, group, budget.block_tokens, budget.kv_type));
    if (recurrent_) state_bytes_ = model::SequenceMemory::bytes_per_state(traits);
  }

  CacheLayout layout(std::int64_t blocks) const {
    CacheLayout layout;
    layout.tokens = blocks * budget_.block_tokens;
    layout.memory = {.blocks = {}, .block_tokens = budget_.block_tokens, .state_slots = 0, .kv_type = budget_.kv_type};
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      layout.memory.blocks.push_back(static_cast<std::int32_t>(group_blocks(groups_[g], blocks)));
      layout.bytes += static_cast<std::uint64_t>(layout.memory.blocks[g]) * block_bytes_[g];
    }
    if (recurrent_) {
      layout.memory.state_slots = static_cast<std::int32_t>(states(blocks, layout.bytes));
      layout.bytes += static_cast<std::uint64_t>(layout.memory.state_slots) * state_bytes_;
    }
    return layout;
  }

  kvcache::CacheOptions options(const CacheLayout& layout) const {
    kvcache::CacheOptions options;
    options.block_tokens = budget_.block_tokens;
    for (std::size_t g = 0; g < groups_.size(); ++g) options.groups.push_back({layout.memory.blocks[g], groups_[g].window});
    options.state_slots = layout.memory.state_slots;
    options.checkpoint_blocks = budget_.checkpoint_blocks;
    options.prefix_cache = budget_.prefix_cache;
    options.phases_differ = budget_.phases_differ;
    return options;
  }

 private:
  std::int64_t group_blocks(const model::KvGroup& group, std::int64_t blocks) const {
    if (group.window == 0) return blocks;
    // What a sequence sees and writes may begin and end anywhere in a block.
    const std::int64_t seen = std::int64_t{group.window} - 1 + std::max(budget_.step_rows, budget_.block_tokens);
    const std::int64_t running = budget_.sequences * (divided_up(seen, budget_.block_tokens) + 1);
    return std::min(blocks, budget_.prefix_cache ? 2 * running : running);
  }

  std::int64_t states(std::int64_t blocks, std::uint64_t kv_bytes) const {
    const std::int64_t running = std::int64_t{budget_.sequences} * (budget_.snapshots ? 2 : 1);
    if (!budget_.prefix_cache) return std::min(running, kMostBlocks);
    // One at each checkpoint, and one where a prompt ends between two.
    const std::int64_t checkpoints = divided_up(blocks, budget_.checkpoint_blocks) + budget_.sequences;
    const auto affordable = static_cast<std::int64_t>(std::min<std::uint64_t>(kv_bytes / state_bytes_, INT32_MAX));
    const std::int64_t kept =
        groups_.empty() ? checkpoints : std::clamp<std::int64_t>(checkpoints, 0, std::max<std::int64_t>(affordable, budget_.sequences));
    return std::min(running + kept, kMostBlocks);
  }

  const CacheBudget& budget_;
  std::vector<model::KvGroup> groups_;
  std::vector<std::uint64_t> block_bytes_;
  bool recurrent_;
  std::uint64_t state_bytes_ = 1;
};

Status check(const CacheBudget& b) {
  if (b.tokens < 0 || (b.tokens == 0 && b.bytes == 0))
    return fail(ErrorCode::kInvalidArgument, "a cache of {} tokens: give a number of tokens or of bytes", b.tokens);
  if (b.sequences < 1 || b.sequences > 1 << 16 || b.step_rows < 1)
    return fail(ErrorCode::kInvalidArgument, "a cache for {} sequences and steps of {} rows", b.sequences, b.step_rows);
  if (b.block_tokens < 1 || b.block_tokens > 4096 || b.checkpoint_blocks < 1)
    return fail(ErrorCode::kInvalidArgument, "blocks of {} tokens, states kept every {} blocks", b.block_tokens, b.checkpoint_blocks);
  return {};
}

}  // namespace

Result<CacheLayout> cache_layout(const model::Traits& traits, const CacheBudget& budget) {
  WEIR_TRY(check(budget));
  WEIR_TRY(model::SequenceMemory::check_type(traits, budget.kv_type));
  const Sizing sizing(traits, budget);
  const auto fits = [&](std::int64_t blocks) { return budget.bytes == 0 || sizing.layout(blocks).bytes <= budget.bytes; };
  // A sequence's last block may be partly empty.
  const std::int64_t tokens = std::min(budget.tokens, kMostBlocks * budget.block_tokens);
  std::int64_t most = std::min(kMostBlocks, divided_up(tokens, budget.block_tokens) + budget.sequences - 1), least = budget.sequences;
  if (budget.tokens == 0) most = kMostBlocks;
  if (!fits(least) || most < least) {
    return fail(ErrorCode::kExhausted, "{} bytes for the cache, and {} sequences need {} at least: allow more memory or fewer sequences",
                budget.bytes, budget.sequences, sizing.layout(least).bytes);
  }
  if (!fits(most)) {  // more blocks never take less memory
    while (most - least > 1) {
      const std::int64_t middle = least + (most - least) / 2;
      (fits(middle) ? least : most) = middle;
    }
    most = least;
  }
  CacheLayout layout = sizing.layout(most);
  layout.cache = sizing.options(layout);
  return layout;
}

void PoolMemory::copy(std::int32_t pool, std::int32_t from, std::int32_t to, std::int32_t tokens) {
  is_state(pool) ? memory_.copy_state(StateSlot(from), StateSlot(to)) : memory_.copy_block(pool, BlockId(from), BlockId(to), tokens);
}

void PoolMemory::clear(std::int32_t pool, std::int32_t id) {
  WEIR_CHECK(is_state(pool), "blocks are not cleared: what no position has written is never read");
  memory_.clear_state(StateSlot(id));
}

void PoolMemory::read(std::int32_t pool, std::int32_t id, std::span<std::byte> bytes) const {
  is_state(pool) ? memory_.read_state(StateSlot(id), bytes) : memory_.read_block(pool, BlockId(id), bytes);
}

void PoolMemory::write(std::int32_t pool, std::int32_t id, std::span<const std::byte> bytes) {
  is_state(pool) ? memory_.write_state(StateSlot(id), bytes) : memory_.write_block(pool, BlockId(id), bytes);
}

std::uint64_t PoolMemory::bytes_of(std::int32_t pool) const { return is_state(pool) ? memory_.state_bytes() : memory_.block_bytes(pool); }

std::vector<std::uint64_t> PoolMemory::pool_bytes() const {
  std::vector<std::uint64_t> bytes;
  for (std::int32_t pool = 0; pool <= memory_.groups(); ++pool) bytes.push_back(bytes_of(pool));
  return bytes;
}

}  // namespace weir::engine
