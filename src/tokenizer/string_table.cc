// SPDX-License-Identifier: Apache-2.0
// Linear probing; numbers are never removed.
#include "tokenizer/string_table.h"

#include <bit>

namespace weir::tokenizer {

void StringTable::reserve(std::size_t count) {
  ends_.reserve(count);
  arena_.reserve(count * 8);
  rehash(std::bit_ceil(count * 2 + 16));
}

std::size_t StringTable::slot_of(std::string_view text) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_bytes(text.data(), text.size()) & mask;
  while (slots_[slot] != kNone && this->text(slots_[slot]) != text) slot = (slot + 1) & mask;
  return slot;
}

void StringTable::rehash(std::size_t slots) {
  if (slots <= slots_.size()) return;
  std::vector<std::int32_t> old(slots, kNone);
  old.swap(slots_);
  for (std::int32_t number : old) {
    if (number != kNone) slots_[slot_of(text(number))] = number;
  }
}

std::int32_t StringTable::add_hidden(std::string_view text) {
  arena_ += text;
  ends_.push_back(arena_.size());
  return size() - 1;
}

std::int32_t StringTable::add(std::string_view text) {
  if (2 * (used_ + 1) > slots_.size()) rehash(slots_.size() * 2);
  const std::size_t slot = slot_of(text);
  if (slots_[slot] == kNone) ++used_;
  return slots_[slot] = add_hidden(text);
}

std::int32_t StringTable::find(std::string_view text) const { return slots_[slot_of(text)]; }

}  // namespace weir::tokenizer
