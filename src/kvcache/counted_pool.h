// SPDX-License-Identifier: Apache-2.0
// A fixed number of interchangeable things, handed out by id and counted by reference: KV blocks and recurrent state slots.
// A thing is used (it has references), cached (none, but its content is kept for whoever asks for it again) or free. The three
// counts add up to the capacity at all times, and misuse is caught at once. Cached ones give way, the least recently used first.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/check.h"
#include "base/result.h"

namespace weir::kvcache {

template <class IdType>
class CountedPool {
 public:
  // `what` names the things in errors, in the plural: "KV cache blocks".
  CountedPool(std::int32_t capacity, const char* what) : what_(what), entries_(checked(capacity)) {
    free_.reserve(entries_.size());
    for (std::int32_t i = capacity - 1; i >= 0; --i) free_.push_back(i);  // the lowest id goes first
  }

  // Called with a cached id just before its content is given up.
  void on_evict(std::function<void(IdType)> evict) { evict_ = std::move(evict); }

  // One with a single reference: the last that became free (its memory is the likeliest to be in a cache), else the cached one
  // that was used longest ago. kExhausted when all have references.
  Result<IdType> allocate() {
    if (free_.empty() && !evict_oldest()) return fail(ErrorCode::kExhausted, "all {} {} are in use", capacity(), what_);
    const std::int32_t id = free_.back();
    free_.pop_back();
    entries_[index(id)].references = 1;
    return IdType(id);
  }

  // The cached one that was used longest ago becomes free; false when none is cached.
  bool evict_oldest() {
    if (oldest_ < 0) return false;
    const IdType id(oldest_);
    if (evict_) evict_(id);
    forget(id);
    return true;
  }

  // Of one in use, or of a cached one, which is in use again then.
  void add_reference(IdType id) {
    Entry& e = entry(id);
    WEIR_CHECK(e.references > 0 || e.kept, "id {} of the {} is free", id.value, what_);
    if (e.references++ == 0) unlink(id.value);
  }

  // Drops one reference; true when it was the last and the id is free or cached again.
  bool release(IdType id) {
    Entry& e = entry(id);
    WEIR_CHECK(e.references > 0, "id {} of the {} is free", id.value, what_);
    if (--e.references > 0) return false;
    if (e.kept) {
      link(id.value);
    } else {
      free_.push_back(id.value);
    }
    return true;
  }

  // Its content is final and may be asked for again: without references it becomes cached instead of free. It has one now.
  void keep(IdType id) {
    Entry& e = entry(id);
    WEIR_CHECK(e.references > 0, "id {} of the {} is free", id.value, what_);
    e.kept = true;
  }

  // The content is of no use any more; a cached one becomes free.
  void forget(IdType id) {
    Entry& e = entry(id);
    if (!e.kept) return;
    e.kept = false;
    if (e.references > 0) return;
    unlink(id.value);
    free_.push_back(id.value);
  }

  std::int32_t references(IdType id) const { return entries_[checked(id.value, capacity())].references; }
  bool shared(IdType id) const { return references(id) > 1; }
  bool kept(IdType id) const { return entries_[checked(id.value, capacity())].kept; }
  std::int32_t capacity() const { return static_cast<std::int32_t>(entries_.size()); }
  std::int32_t cached() const { return cached_; }
  std::int32_t free() const { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t available() const { return free() + cached_; }  // that allocate() can give
  std::int32_t used() const { return capacity() - available(); }

 private:
  struct Entry {
    std::int32_t references = 0;
    std::int32_t older = -1, newer = -1;  // neighbours among the cached
    bool kept = false;
  };

  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }
  static std::size_t checked(std::int32_t capacity) {
    WEIR_CHECK(capacity >= 0, "capacity {}", capacity);
    return index(capacity);
  }
  static std::size_t checked(std::int32_t id, std::int32_t capacity) {
    WEIR_CHECK(id >= 0 && id < capacity, "id {} of {}", id, capacity);
    return index(id);
  }
  Entry& entry(IdType id) { return entries_[checked(id.value, capacity())]; }

  void link(std::int32_t id) {  // as the newest
    entries_[index(id)].older = newest_;
    entries_[index(id)].newer = -1;
    (newest_ < 0 ? oldest_ : entries_[index(newest_)].newer) = id;
    newest_ = id;
    ++cached_;
  }

  void unlink(std::int32_t id) {
    const Entry& e = entries_[index(id)];
    (e.older < 0 ? oldest_ : entries_[index(e.older)].newer) = e.newer;
    (e.newer < 0 ? newest_ : entries_[index(e.newer)].older) = e.older;
    --cached_;
  }

  const char* what_;
  std::vector<Entry> entries_;
  std::vector<std::int32_t> free_;          // a stack
  std::int32_t oldest_ = -1, newest_ = -1;  // ends of the list of the cached
  std::int32_t cached_ = 0;
  std::function<void(IdType)> evict_;
};

}  // namespace weir::kvcache
