// SPDX-License-Identifier: Apache-2.0
// When a queue should stop growing. A burst may wait as long as it takes; but where requests have begun too late for a while, the queue
// only adds to everybody's wait, and who comes then is refused unless few are before it. The idea is CoDel's (Nichols and Jacobson,
// "Controlling Queue Delay", ACM Queue 10(5), 2012): the time waited tells a good queue from a bad one, its length does not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace weir::scheduler {

struct WaitLimits {
  // Longer waits than this make a bad queue. Zero: a tenth of what a request takes to run, at least 100 ms and at most 10 s.
  Duration target = Duration::max();
  // For so long they are put up with, in all: time without them gives a fifth of itself back.
  Duration patience = std::chrono::seconds(1);
};

class StandingQueue {
 public:
  explicit StandingQueue(const WaitLimits& limits) : limits_(limits) {}

  // A request began, having waited for so long.
  void began(Duration waited, TimePoint now) { note(waited, now); }
  // One ended after so many tokens; `early`: before it had all that it might have.
  void ended(Duration served, std::int64_t tokens, bool early) {
    const double share = served_ > 0 ? kShare : 1;
    served_ += (to_seconds(served) - served_) * share;
    tokens_ += (static_cast<double>(tokens) - tokens_) * share;
    early_ += ((early ? 1.0 : 0.0) - early_) * share;
  }
  void emptied(TimePoint now) { note(Duration::zero(), now); }
  void refused(TimePoint now) { last_bad_ = now; }

  // Whether requests have begun too late for too long; `first_waited`: how long the next to begin has waited already. Then only those
  // should be taken for which there will be a place soon(), until for a while none was late and none refused. (That chance empties the
  // queue does not end an overload.)
  bool stands(Duration first_waited, TimePoint now) {
    if (first_waited > target()) note(first_waited, now);
    if (stands_ && now - last_bad_ >= limits_.patience) stands_ = false;
    return stands_;
  }
  // Whether a place for a request with `ahead` before it is likely to be free within the target, where those that run may have
  // `left[i]` more tokens, and so many places are free. For the others two answers must agree: by Little's law those that run end one by
  // one in the time that one takes; and as many of them must be near their ends (who began together end together, long after others).
  template <std::ranges::range Left>
  bool soon(std::int64_t ahead, const Left& left, std::int64_t free) const {
    const double target = to_seconds(this->target()), chance = served_ > 0 ? std::min(1.0, early_ * target / served_) : 1.0;
    double running = 0, ends = 0;
    for (const std::int64_t tokens : left) {
      running += 1;
      ends += static_cast<double>(tokens) * served_ <= target * tokens_ ? 1.0 : chance;
    }
    const auto needed = static_cast<double>(ahead + 1 - free);
    return needed <= 0 || (needed * served_ <= target * running && needed <= ends);
  }
  Duration target() const {
    if (limits_.target != Duration::zero()) return limits_.target;
    const auto tenth = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(served_ / 10));
    return std::clamp<Duration>(tenth, std::chrono::milliseconds(100), std::chrono::seconds(10));
  }

 private:
  static constexpr int kRecovery = 5;
  static constexpr double kShare = 1.0 / 16;  // of the newest in an average

  void note(Duration waited, TimePoint now) {
    const Duration since = noted_ ? now - *noted_ : Duration::zero();
    if (late_) {
      patience_ = std::max(patience_ - since, Duration::zero());
    } else if (!stands_) {
      patience_ = std::min(patience_ + since / kRecovery, limits_.patience);
    }
    noted_ = now;
    late_ = waited > target();
    if (!late_) return;
    last_bad_ = now;
    if (patience_ == Duration::zero()) stands_ = true;
  }

  WaitLimits limits_;
  double served_ = 0, tokens_ = 0, early_ = 0;  // averages over those that ended: seconds from begin to end, tokens, whether early
  std::optional<TimePoint> noted_;              // when a wait was noted, and whether it was too long
  bool late_ = false;
  Duration patience_ = limits_.patience;  // what is left of it
  bool stands_ = false;
  TimePoint last_bad_{};  // when a request was late or refused
};

}  // namespace weir::scheduler
