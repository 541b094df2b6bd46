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
  // Longer waits than this make a bad queue. Zero: a quarter of what a request takes to run, at least 250 ms and at most 30 s.
  Duration target = Duration::max();
  Duration patience = std::chrono::seconds(2);  // for so long they are put up with
};

class StandingQueue {
 public:
  explicit StandingQueue(const WaitLimits& limits) : limits_(limits) {}

  // A request began, having waited for so long.
  void began(Duration waited, TimePoint now) {
    if (last_) average(pace_, now - *last_, 16);
    last_ = now;
    note(waited, now);
  }
  void ended(Duration served) { average(served_, served, 8); }
  // Nobody waits: whatever came before is over.
  void emptied() {
    last_.reset();
    bad_since_.reset();
    stands_ = false;
  }

  // Whether requests have begun too late for too long; `first_waited`: how long the next to begin has waited already. Then only those
  // should be taken whose wait() is within the target, until the queue has been empty: at a lasting overload it never is.
  bool stands(Duration first_waited, TimePoint now) {
    if (first_waited > target()) note(first_waited, now);
    return stands_;
  }
  Duration wait(std::int64_t ahead) const { return ahead * pace_; }  // by the pace at which the queue has moved
  Duration target() const {
    if (limits_.target != Duration::zero()) return limits_.target;
    return std::clamp<Duration>(served_ / 4, std::chrono::milliseconds(250), std::chrono::seconds(30));
  }

 private:
  void note(Duration waited, TimePoint now) {
    if (waited <= target()) {
      bad_since_.reset();
    } else if (!bad_since_) {
      bad_since_ = now;
    } else if (now - *bad_since_ >= limits_.patience) {
      stands_ = true;
    }
  }
  static void average(Duration& value, Duration sample, int share) {
    value = value == Duration{} ? sample : value + (sample - value) / share;
  }

  WaitLimits limits_;
  Duration pace_{}, served_{};     // between two that begin while others wait; from beginning to end
  std::optional<TimePoint> last_;  // when one began, others waiting since
  std::optional<TimePoint> bad_since_;
  bool stands_ = false;
};

}  // namespace weir::scheduler
