// SPDX-License-Identifier: Apache-2.0
// Growing asks for everything it needs before it takes anything, so that a refusal leaves the table as it was.
#include "kvcache/sequence_blocks.h"

#include <utility>

namespace weir::kvcache {

SequenceBlocks::SequenceBlocks(SequenceBlocks&& other) noexcept
    : allocator_(other.allocator_), blocks_(std::exchange(other.blocks_, {})), tokens_(std::exchange(other.tokens_, 0)) {}

SequenceBlocks& SequenceBlocks::operator=(SequenceBlocks&& other) noexcept {
  if (this != &other) {
    free();
    allocator_ = other.allocator_;
    blocks_ = std::exchange(other.blocks_, {});
    tokens_ = std::exchange(other.tokens_, 0);
  }
  return *this;
}

bool SequenceBlocks::must_copy_last(std::int64_t tokens) const {
  return tokens > tokens_ && tokens_ % allocator_->block_tokens() != 0 && allocator_->shared(blocks_.back());
}

std::int64_t SequenceBlocks::blocks_to_grow(std::int64_t tokens) const {
  if (tokens <= tokens_) return 0;
  return allocator_->blocks_for(tokens) - static_cast<std::int64_t>(blocks_.size()) + (must_copy_last(tokens) ? 1 : 0);
}

Result<std::optional<BlockCopy>> SequenceBlocks::grow(std::int64_t tokens) {
  const std::int64_t needed = blocks_to_grow(tokens);
  if (needed > allocator_->available()) {
    return fail(ErrorCode::kExhausted, "{} more KV cache blocks are needed for {} tokens, and {} of {} are free", needed, tokens,
                allocator_->available(), allocator_->capacity());
  }
  std::optional<BlockCopy> copy;
  if (must_copy_last(tokens)) {
    const BlockId from = blocks_.back();
    WEIR_ASSIGN(const BlockId to, allocator_->allocate());
    allocator_->release(from);
    blocks_.back() = to;
    copy = BlockCopy{from, to, static_cast<std::int32_t>(tokens_ % allocator_->block_tokens())};
  }
  while (static_cast<std::int64_t>(blocks_.size()) < allocator_->blocks_for(tokens)) {
    WEIR_ASSIGN(const BlockId block, allocator_->allocate());
    blocks_.push_back(block);
  }
  if (tokens > tokens_) tokens_ = tokens;
  return copy;
}

SequenceBlocks SequenceBlocks::fork() const {
  SequenceBlocks copy(*allocator_);
  copy.blocks_ = blocks_;
  copy.tokens_ = tokens_;
  for (BlockId block : blocks_) allocator_->add_reference(block);
  return copy;
}

void SequenceBlocks::free() {
  for (BlockId block : blocks_) allocator_->release(block);
  blocks_.clear();
  tokens_ = 0;
}

}  // namespace weir::kvcache
