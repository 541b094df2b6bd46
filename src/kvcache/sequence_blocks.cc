// SPDX-License-Identifier: Apache-2.0
// Growing asks for everything it needs before it takes anything, so that a refusal leaves the table as it was.
#include "kvcache/sequence_blocks.h"

#include <algorithm>
#include <utility>

namespace weir::kvcache {

SequenceBlocks::SequenceBlocks(SequenceBlocks&& other) noexcept
    : allocator_(other.allocator_),
      window_(other.window_),
      blocks_(std::exchange(other.blocks_, {})),
      unseen_(std::exchange(other.unseen_, 0)),
      tokens_(std::exchange(other.tokens_, 0)),
      room_(std::exchange(other.room_, 0)),
      last_is_own_(std::exchange(other.last_is_own_, false)) {}

SequenceBlocks& SequenceBlocks::operator=(SequenceBlocks&& other) noexcept {
  if (this != &other) {
    free();
    allocator_ = other.allocator_;
    window_ = other.window_;
    blocks_ = std::exchange(other.blocks_, {});
    unseen_ = std::exchange(other.unseen_, 0);
    tokens_ = std::exchange(other.tokens_, 0);
    room_ = std::exchange(other.room_, 0);
    last_is_own_ = std::exchange(other.last_is_own_, false);
  }
  return *this;
}

bool SequenceBlocks::must_copy_last(std::int64_t tokens) const {
  if (tokens <= tokens_ || last_is_own_ || tokens_ % allocator_->block_tokens() == 0) return false;
  return allocator_->shared(blocks_.back()) || allocator_->kept(blocks_.back());
}

std::int64_t SequenceBlocks::blocks_to_grow(std::int64_t tokens) const {
  if (tokens <= tokens_) return 0;
  return allocator_->blocks_for(tokens) - static_cast<std::int64_t>(blocks_.size()) + (must_copy_last(tokens) ? 1 : 0);
}

std::int64_t SequenceBlocks::reach() const {
  const std::int64_t blocks = allocator_->available() - (must_copy_last(tokens_ + 1) ? 1 : 0);
  return blocks < 0 ? tokens_ : room_ + blocks * allocator_->block_tokens();
}

Result<std::optional<BlockCopy>> SequenceBlocks::grow(std::int64_t tokens) {
  const std::int64_t needed = blocks_to_grow(tokens);
  if (needed > allocator_->available()) {
    return fail(ErrorCode::kExhausted, "{} more KV cache blocks are needed for {} tokens, and {} of {} are free", needed, tokens,
                allocator_->available(), allocator_->capacity());
  }
  std::optional<BlockCopy> copy;
  if (needed > 0 && must_copy_last(tokens)) {
    const BlockId from = blocks_.back();
    WEIR_ASSIGN(const BlockId to, allocator_->allocate());
    allocator_->release(from);
    blocks_.back() = to;
    copy = BlockCopy{from, to, static_cast<std::int32_t>(tokens_ % allocator_->block_tokens())};
  }
  for (std::int64_t missing = needed - (copy ? 1 : 0); missing > 0; --missing) {
    WEIR_ASSIGN(const BlockId block, allocator_->allocate());
    blocks_.push_back(block);
  }
  blocks_changed();
  if (tokens > tokens_) {
    tokens_ = tokens;
    last_is_own_ = true;
  }
  return copy;
}

void SequenceBlocks::truncate(std::int64_t tokens) {
  if (tokens >= tokens_) return;
  tokens_ = tokens;
  for (const auto keep = static_cast<std::size_t>(allocator_->blocks_for(tokens)); blocks_.size() > keep; blocks_.pop_back()) {
    if (blocks_.back().valid()) allocator_->release(blocks_.back());
  }
  unseen_ = std::min(unseen_, static_cast<std::int64_t>(blocks_.size()));
  last_is_own_ = false;
  blocks_changed();
}

void SequenceBlocks::adopt(std::span<const BlockId> blocks) {
  WEIR_CHECK(blocks_.empty(), "a table of {} blocks adopts more", blocks_.size());
  blocks_.assign(blocks.begin(), blocks.end());
  tokens_ = static_cast<std::int64_t>(blocks.size()) * allocator_->block_tokens();
  last_is_own_ = false;
  blocks_changed();
  unseen_ = std::find_if(blocks.begin(), blocks.end(), [](BlockId b) { return b.valid(); }) - blocks.begin();
}

std::int64_t SequenceBlocks::first_seen(std::int64_t position) const {
  return window_ == 0 ? 0 : std::max<std::int64_t>(0, position - window_ + 1) / allocator_->block_tokens();
}

void SequenceBlocks::release_unseen(std::int64_t position) {
  if (window_ == 0) return;
  const std::int64_t first = std::min(first_seen(position), static_cast<std::int64_t>(blocks_.size()));
  for (; unseen_ < first; ++unseen_) allocator_->release(std::exchange(blocks_[static_cast<std::size_t>(unseen_)], BlockId()));
}

SequenceBlocks SequenceBlocks::fork() {
  last_is_own_ = false;
  SequenceBlocks copy(*allocator_, window_);
  copy.blocks_ = blocks_;
  copy.unseen_ = unseen_;
  copy.tokens_ = tokens_;
  copy.room_ = room_;
  for (BlockId block : blocks_) {
    if (block.valid()) allocator_->add_reference(block);
  }
  return copy;
}

void SequenceBlocks::free() { truncate(0); }

}  // namespace weir::kvcache
