// SPDX-License-Identifier: Apache-2.0
// What a router follows to know which prefixes lie here: blocks stored and removed, in order. The queue is bounded; when the
// follower is too slow, everything queued gives way to one kCleared with `resync`, after which a snapshot tells what is there.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "kvcache/block_hash.h"

namespace weir::kvcache {

struct CacheEvent {
  enum class Kind { kStored, kRemoved, kCleared };
  Kind kind = Kind::kStored;
  std::uint64_t number = 0;  // counts all events ever made; a gap means that some were lost
  BlockHash hash = 0;
  BlockHash parent = 0;         // kStored: the block before, or the salt's root_hash()
  std::vector<TokenId> tokens;  // kStored
  bool resync = false;          // kCleared: events were lost, the cache is not empty
};

class CacheEvents {
 public:
  explicit CacheEvents(std::size_t limit) : limit_(limit) {}  // 0 = nobody listens

  bool wanted() const { return limit_ > 0; }

  void add(CacheEvent event) {
    if (!wanted()) return;
    event.number = next_++;
    if (event.kind == CacheEvent::Kind::kCleared) queue_.clear();  // what was before matters no more
    if (queue_.size() == limit_) {
      queue_.clear();
      event = {.kind = CacheEvent::Kind::kCleared, .number = event.number, .hash = 0, .parent = 0, .tokens = {}, .resync = true};
    }
    // After an overflow nothing is worth queueing until the follower has seen it: the snapshot will tell.
    if (!queue_.empty() && queue_.front().resync) return;
    queue_.push_back(std::move(event));
  }

  // The oldest `most` events, which are the caller's from now on.
  std::vector<CacheEvent> drain(std::size_t most = SIZE_MAX) {
    std::vector<CacheEvent> events;
    for (; !queue_.empty() && events.size() < most; queue_.pop_front()) events.push_back(std::move(queue_.front()));
    return events;
  }

 private:
  std::size_t limit_;
  std::uint64_t next_ = 0;
  std::deque<CacheEvent> queue_;
};

}  // namespace weir::kvcache
