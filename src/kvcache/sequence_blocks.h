// SPDX-License-Identifier: Apache-2.0
// The block table of one sequence: block i holds positions [i·block_tokens, (i+1)·block_tokens). Forks share their blocks; a
// sequence may write only to a block that it alone holds and that is not kept for others, so the first to append to such a partly
// filled last block gets a copy of it (copy on write; vLLM, SOSP 2023, section 4.4). Layers with a sliding window have
// tables of their own, whose front is given back once no row can see it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kvcache/block_allocator.h"

namespace weir::kvcache {

// The first `tokens` positions of `from` must be copied to `to`, over all layers, before anything is written to either.
struct BlockCopy {
  BlockId from, to;
  std::int32_t tokens = 0;
  friend bool operator==(const BlockCopy&, const BlockCopy&) = default;
};

class SequenceBlocks {
 public:
  // The allocator must outlive the table. `window` > 0: position i sees i-window+1 … i.
  explicit SequenceBlocks(BlockAllocator& allocator, std::int32_t window = 0) : allocator_(&allocator), window_(window) {}
  ~SequenceBlocks() { free(); }
  SequenceBlocks(SequenceBlocks&& other) noexcept;
  SequenceBlocks& operator=(SequenceBlocks&& other) noexcept;

  // Makes room for positions [0, tokens), of which those from the present tokens() on will be written. The copy to do first, if
  // the last block was shared or kept. kExhausted when the blocks do not suffice: nothing changed then. Never shrinks.
  Result<std::optional<BlockCopy>> grow(std::int64_t tokens);

  // The same when it takes no block and no copy, which is nearly always: false, and nothing changed, when it would.
  bool grow_in_place(std::int64_t tokens) {
    if (!last_is_own_ || tokens > room_) return false;
    if (tokens > tokens_) tokens_ = tokens;
    return true;
  }

  // Available blocks that grow(tokens) would take: for deciding over several sequences at once.
  std::int64_t blocks_to_grow(std::int64_t tokens) const;

  // The most tokens that grow() can reach with the blocks that are available now.
  std::int64_t reach() const;

  // Goes back to fewer positions and gives back the blocks behind them.
  void truncate(std::int64_t tokens);

  // An empty table starts with whole blocks that hold positions before; a reference to each is the table's from now on. Those that
  // no row from their end on can see are invalid ids.
  void adopt(std::span<const BlockId> blocks);

  // Gives back what no row at `position` or behind it can see; such entries of the table are invalid ids then.
  void release_unseen(std::int64_t position);
  // The first block that a row at `position` sees.
  std::int64_t first_seen(std::int64_t position) const;

  // A second sequence with the same positions. Takes no block: all are shared until one of the two grows.
  SequenceBlocks fork();

  // Gives back every block, the last first; the table is empty, and usable again.
  void free();

  std::span<const BlockId> blocks() const { return blocks_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t held() const { return static_cast<std::int64_t>(blocks_.size()) - unseen_; }
  std::int64_t unseen() const { return unseen_; }

 private:
  bool must_copy_last(std::int64_t tokens) const;
  void blocks_changed() { room_ = static_cast<std::int64_t>(blocks_.size()) * allocator_->block_tokens(); }

  BlockAllocator* allocator_;
  std::int32_t window_ = 0;
  std::vector<BlockId> blocks_;
  std::int64_t unseen_ = 0;  // blocks at the front that were given back
  std::int64_t tokens_ = 0;
  std::int64_t room_ = 0;     // positions that the blocks hold
  bool last_is_own_ = false;  // known for sure: nobody else holds the last block, and it is not kept
};

}  // namespace weir::kvcache
