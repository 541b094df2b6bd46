// SPDX-License-Identifier: Apache-2.0
// The block table of one sequence: block i holds positions [i·block_tokens, (i+1)·block_tokens). Forks share their blocks; a
// sequence may write only to a block that it alone holds, so the first to append to a shared, partly filled last block
// gets a copy of it (copy on write; vLLM, SOSP 2023, section 4.4).
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
  explicit SequenceBlocks(BlockAllocator& allocator) : allocator_(&allocator) {}  // must outlive the table
  ~SequenceBlocks() { free(); }
  SequenceBlocks(SequenceBlocks&& other) noexcept;
  SequenceBlocks& operator=(SequenceBlocks&& other) noexcept;

  // Makes room for positions [0, tokens), of which those from the present tokens() on will be written. The copy to do first, if
  // the last block was shared. kExhausted when the blocks do not suffice: nothing changed then. Never shrinks.
  Result<std::optional<BlockCopy>> grow(std::int64_t tokens);

  // Free blocks that grow(tokens) would take: for deciding over several sequences at once.
  std::int64_t blocks_to_grow(std::int64_t tokens) const;

  // A second sequence with the same positions. Takes no block: all are shared until one of the two grows.
  SequenceBlocks fork() const;

  // Gives back every block; the table is empty, and usable again.
  void free();

  std::span<const BlockId> blocks() const { return blocks_; }
  std::int64_t tokens() const { return tokens_; }

 private:
  bool must_copy_last(std::int64_t tokens) const;

  BlockAllocator* allocator_;
  std::vector<BlockId> blocks_;
  std::int64_t tokens_ = 0;
};

}  // namespace weir::kvcache
