// SPDX-License-Identifier: Apache-2.0
// Bounded queues without locks between threads, and a way to wait for them. Many producers, one consumer: Vyukov's bounded queue
// ("Bounded MPMC queue", 1024cores.net), each cell with a turn number. One producer, one consumer: a ring with two counters.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace weir::engine {

template <class T>
class ManyToOne {
 public:
  explicit ManyToOne(std::size_t capacity) : cells_(std::bit_ceil(capacity)) {
    for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  // False when it is full; `value` is untouched then. From any thread.
  bool push(T& value) {
    std::size_t at = head_.load(std::memory_order_relaxed);
    while (true) {
      Cell& cell = cells_[at & (cells_.size() - 1)];
      const std::size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (!head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
        cell.value = std::move(value);
        cell.turn.store(at + 1, std::memory_order_release);
        return true;
      }
      if (turn < at) return false;
      at = head_.load(std::memory_order_relaxed);
    }
  }

  // From the one consumer.
  std::optional<T> pop() {
    Cell& cell = cells_[tail_ & (cells_.size() - 1)];
    if (cell.turn.load(std::memory_order_acquire) != tail_ + 1) return std::nullopt;
    std::optional<T> value(std::move(cell.value));
    cell.value = T();
    cell.turn.store(tail_ + cells_.size(), std::memory_order_release);
    ++tail_;
    return value;
  }

 private:
  struct Cell {
    std::atomic<std::size_t> turn;
    T value{};
  };
  std::vector<Cell> cells_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::size_t tail_ = 0;
};

template <class T>
class OneToOne {
 public:
  explicit OneToOne(std::size_t capacity) : cells_(std::bit_ceil(capacity)) {}

  // False when it is full; `value` is untouched then.
  bool push(T& value) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_.load(std::memory_order_acquire) == cells_.size()) return false;
    cells_[head & (cells_.size() - 1)] = std::move(value);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  std::optional<T> pop() {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == head_.load(std::memory_order_acquire)) return std::nullopt;
    std::optional<T> value(std::move(cells_[tail & (cells_.size() - 1)]));
    cells_[tail & (cells_.size() - 1)] = T();
    tail_.store(tail + 1, std::memory_order_release);
    return value;
  }

 private:
  std::vector<T> cells_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
};

// Wakes one waiting thread. A notice that comes first is kept, so none is lost; several are one.
class Notice {
 public:
  void give() {
    if (given_.exchange(true, std::memory_order_acq_rel)) return;
    const std::lock_guard lock(mutex_);
    changed_.notify_one();
  }

  // Until one is given or `most` has passed (or an hour); takes it. Whether one was given.
  bool wait(Duration most) {
    if (!given_.load(std::memory_order_acquire)) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::min(most, kLongest), [this] { return given_.load(std::memory_order_acquire); });
    }
    // An exchange, not a store: what the taker looks at next must not be read before the notice is gone, or one that comes in
    // between would find the old notice, wake nobody, and be wiped out.
    return given_.exchange(false, std::memory_order_acq_rel);
  }
  bool given() const { return given_.load(std::memory_order_acquire); }

 private:
  static constexpr Duration kLongest = std::chrono::hours(1);  // more would overflow the end of the wait

  std::atomic<bool> given_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace weir::engine
