// SPDX-License-Identifier: Apache-2.0
// The arena's slow paths: a buffer that the block cannot hold, and growing the block between passes.
#include "model/arena.h"

#include <algorithm>
#include <utility>

namespace weir::model {

std::byte* Arena::take(std::size_t bytes) {
  const auto alignment = static_cast<std::size_t>(kAlignment);
  const std::size_t begin = used_, end = used_ + (bytes + alignment - 1) / alignment * alignment;
  if (end > capacity_) overflows_.push_back(allocate(std::max(bytes, alignment)));
  used_ = end;
  peak_ = std::max(peak_, end);
  return end > capacity_ ? overflows_.back().get() : block_.get() + begin;
}

// The peak is forgotten first: a pass that was too large must not make every later one fail.
void Arena::reset() {
  const std::size_t wanted = std::exchange(peak_, 0);
  used_ = 0;
  overflows_.clear();
  if (wanted <= capacity_) return;
  block_.reset();
  capacity_ = 0;
  block_ = allocate(wanted);
  capacity_ = wanted;
}

}  // namespace weir::model
