// SPDX-License-Identifier: Apache-2.0
// How often guesses were right, by their strength: for a look-up the tokens that agreed before it, for other sources the guess's
// place in its draft. Old outcomes fade. What one sequence has not shown yet is taken from its parent, the sequences before it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::speculation {

class Acceptance {
 public:
  // The first estimate: 0.4 for two tokens that agree, 0.63 for five, 0.9 for many.
  Acceptance() {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      const auto strength = static_cast<float>(i < 8 ? i + 1 : std::size_t{9} << (i - 8));
      counts_[i] = {kRootPrior * strength / (strength + 3), kRootPrior};
    }
  }
  // Starts from the parent's estimates as they are now.
  static Acceptance child_of(const Acceptance& parent) {
    Acceptance child = parent;
    child.memory_ = kChildMemory;
    for (Count& count : child.counts_) count = {kChildPrior * count.right / count.seen, kChildPrior};
    return child;
  }

  void record(std::int32_t strength, bool right) {
    Count& count = counts_[bucket(strength)];
    count.right = count.right * memory_ + (right ? 1.f : 0.f);
    count.seen = count.seen * memory_ + 1;
  }

  float probability(std::int32_t strength) const {
    const Count& count = counts_[bucket(strength)];
    return std::min(count.right / count.seen, kAtMost);
  }

 private:
  static constexpr std::size_t kBuckets = 11;  // 1 to 8, then 9, 17, 33 and more
  static constexpr float kRootPrior = 4, kChildPrior = 3, kAtMost = 0.98f;
  static constexpr float kRootMemory = 0.998f, kChildMemory = 0.96f;

  static std::size_t bucket(std::int32_t strength) {
    if (strength <= 8) return static_cast<std::size_t>(std::max(strength, 1) - 1);
    const auto width = static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(strength - 1)));  // 9 to 16: 4
    return std::min(kBuckets - 1, width + 4);
  }

  struct Count {
    float right = 0, seen = 0;
  };
  std::array<Count, kBuckets> counts_;
  float memory_ = kRootMemory;
};

}  // namespace weir::speculation
