// SPDX-License-Identifier: Apache-2.0
// A fixed number of interchangeable things, handed out by id and counted by reference: KV blocks and recurrent state slots.
// All bookkeeping is here and exact: used() + available() == capacity() at all times, and misuse is caught at once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/result.h"

namespace weir::kvcache {

template <class IdType>
class CountedPool {
 public:
  // `what` names the things in errors, in the plural: "KV cache blocks".
  CountedPool(std::int32_t capacity, const char* what) : what_(what), references_(checked(capacity), 0) {
    free_.reserve(references_.size());
    for (std::int32_t i = capacity - 1; i >= 0; --i) free_.push_back(i);  // the lowest id goes first
  }

  // A free one, now with one reference. The last one released goes first: its memory is the likeliest to be in a cache.
  // kExhausted when none is left.
  Result<IdType> allocate() {
    if (free_.empty()) return fail(ErrorCode::kExhausted, "all {} {} are in use", capacity(), what_);
    const std::int32_t id = free_.back();
    free_.pop_back();
    references_[index(id)] = 1;
    return IdType(id);
  }

  void add_reference(IdType id) { ++live(id); }

  // Drops one reference; true when it was the last and the id is free again.
  bool release(IdType id) {
    if (--live(id) > 0) return false;
    free_.push_back(id.value);
    return true;
  }

  std::int32_t references(IdType id) const { return references_[checked(id.value, capacity())]; }
  bool shared(IdType id) const { return references(id) > 1; }
  std::int32_t capacity() const { return static_cast<std::int32_t>(references_.size()); }
  std::int32_t available() const { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t used() const { return capacity() - available(); }

 private:
  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }
  static std::size_t checked(std::int32_t capacity) {
    WEIR_CHECK(capacity >= 0, "capacity {}", capacity);
    return index(capacity);
  }
  static std::size_t checked(std::int32_t id, std::int32_t capacity) {
    WEIR_CHECK(id >= 0 && id < capacity, "id {} of {}", id, capacity);
    return index(id);
  }
  std::int32_t& live(IdType id) {
    std::int32_t& count = references_[checked(id.value, capacity())];
    WEIR_CHECK(count > 0, "id {} of the {} is free", id.value, what_);
    return count;
  }

  const char* what_;
  std::vector<std::int32_t> references_;  // by id; 0 = free
  std::vector<std::int32_t> free_;        // a stack
};

}  // namespace weir::kvcache
