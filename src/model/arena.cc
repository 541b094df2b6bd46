// SPDX-License-Identifier: Apache-2.0
// The arena's slow paths: a buffer that the block cannot hold, and growing the block between passes.
#include "model/arena.h"

#include <algorithm>

namespace weir::model {

std::byte* Arena::take(std::size_t bytes) {
  const auto alignment = static_cast<std::size_t>(kAlignment);
  const std::size_t begin = used_;
  used_ += (bytes + alignment - 1) / alignment * alignment;
  peak_ = std::max(peak_, used_);
  if (used_ <= capacity_) return block_.get() + begin;
  overflows_.push_back(allocate(std::max(bytes, alignment)));
  return overflows_.back().get();
}

void Arena::reset() {
  used_ = 0;
  overflows_.clear();
  if (peak_ <= capacity_) return;
  block_.reset();
  capacity_ = 0;
  block_ = allocate(peak_);
  capacity_ = peak_;
}

}  // namespace weir::model
