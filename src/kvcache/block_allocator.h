// SPDX-License-Identifier: Apache-2.0
// Hands out the KV cache's blocks. It knows how many there are and who shares what, not what they hold: the memory belongs to
// the model. A block holds the keys and values of `block_tokens()` consecutive positions, over all layers of its group.
#pragma once

#include "base/ids.h"
#include "kvcache/counted_pool.h"

namespace weir::kvcache {

class BlockAllocator : public CountedPool<BlockId> {
 public:
  BlockAllocator(std::int32_t blocks, std::int32_t block_tokens) : CountedPool(blocks, "KV cache blocks"), block_tokens_(block_tokens) {
    WEIR_CHECK(block_tokens > 0, "block of {} tokens", block_tokens);
  }

  std::int32_t block_tokens() const { return block_tokens_; }
  std::int64_t blocks_for(std::int64_t tokens) const { return (tokens + block_tokens_ - 1) / block_tokens_; }

 private:
  std::int32_t block_tokens_;
};

}  // namespace weir::kvcache
