// SPDX-License-Identifier: Apache-2.0
// The counters beneath the metrics. Recording is a few relaxed atomic additions, on lines of memory that threads seldom share; reading adds
// them up. A reading taken meanwhile may miss what is just being recorded, never count it twice.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weir::telemetry {

using Counter = std::atomic<std::uint64_t>;
inline void add(Counter& counter, std::uint64_t by = 1) { counter.fetch_add(by, std::memory_order_relaxed); }

// What a histogram held at one moment: counts[i] values are in (bounds[i-1], bounds[i]], the last ones above all bounds.
struct HistogramReading {
  std::vector<double> bounds;
  std::vector<std::uint64_t> counts;
  double sum = 0;

  std::uint64_t total() const;
  std::uint64_t at_most(double bound) const;  // of one of the bounds
};

class Histogram {
 public:
  static constexpr std::size_t kMaxBounds = 63;

  Histogram() = default;
  // Sorted and without repeats, at most kMaxBounds. Before anything is recorded.
  void set_bounds(std::vector<double> bounds);
  void record(double value);  // below zero counts as zero; what is no number does not count
  HistogramReading read() const;

 private:
  static constexpr std::size_t kShards = 4;
  struct alignas(64) Shard {
    std::array<Counter, kMaxBounds + 1> counts = {};
    std::atomic<double> sum{0};
  };
  std::vector<double> bounds_;
  std::array<Shard, kShards> shards_ = {};
};

// Values by name: found without a lock, made once, never removed. Beyond `kMost` names all share one, so that nobody can fill the memory.
template <class T>
class NamedTable {
 public:
  static constexpr std::size_t kMost = 512;
  using Prepare = std::function<void(T&)>;  // a new one, before others see it

  explicit NamedTable(Prepare prepare = {}) : prepare_(std::move(prepare)), other_(std::make_unique<Node>()) {
    other_->name = "other";
    if (prepare_) prepare_(other_->value);
  }
  ~NamedTable() {
    for (auto& slot : slots_) delete slot.load();
  }
  NamedTable(const NamedTable&) = delete;
  NamedTable& operator=(const NamedTable&) = delete;

  T& operator[](std::string_view name) {
    std::size_t at = std::hash<std::string_view>{}(name) % kSlots;
    std::unique_ptr<Node> made;
    for (std::size_t tried = 0; tried < kSlots; ++tried, at = (at + 1) % kSlots) {
      Node* node = slots_[at].load(std::memory_order_acquire);
      if (!node) {
        if (!made) {
          if (used_.fetch_add(1, std::memory_order_relaxed) >= kMost) {
            used_.fetch_sub(1, std::memory_order_relaxed);
            break;
          }
          made = std::make_unique<Node>();
          made->name = name;
          if (prepare_) prepare_(made->value);
        }
        if (slots_[at].compare_exchange_strong(node, made.get(), std::memory_order_acq_rel)) return made.release()->value;
      }
      if (node->name == name) {
        if (made) used_.fetch_sub(1, std::memory_order_relaxed);  // another thread was faster
        return node->value;
      }
    }
    other_used_.store(true, std::memory_order_relaxed);
    return other_->value;
  }

  // visit(name, value) of each.
  template <class Visit>
  void each(Visit&& visit) const {
    for (const auto& slot : slots_)
      if (const Node* node = slot.load(std::memory_order_acquire)) visit(std::string_view(node->name), node->value);
    if (other_used_.load(std::memory_order_relaxed)) visit(std::string_view(other_->name), other_->value);
  }

 private:
  static constexpr std::size_t kSlots = 1024;
  struct Node {
    std::string name;
    T value;
  };
  Prepare prepare_;
  std::array<std::atomic<Node*>, kSlots> slots_ = {};
  std::atomic<std::size_t> used_{0};
  std::atomic<bool> other_used_{false};
  std::unique_ptr<Node> other_;
};

}  // namespace weir::telemetry
