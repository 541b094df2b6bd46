// SPDX-License-Identifier: Apache-2.0
// When a queue should stop growing. A burst may wait as long as it takes, and so may clients of which each waits for its answer before it
// asks again; but where requests begin too late and more come than end, the queue only adds to everybody's wait,
// and those that would begin late are refused. The idea is CoDel's (Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 10(5),
// 2012): the time waited tells a good queue from a bad one, its length does not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>

#include "base/clock.h"

namespace weir::scheduler {

struct WaitLimits {
  // Longer waits than this are late. Zero: a tenth of what a request takes to run, at least 100 ms and at most 10 s.
  Duration target = Duration::max();
};

class StandingQueue {
 public:
  explicit StandingQueue(const WaitLimits& limits) : limits_(limits) {}

  // A request began, having waited for so long; so many requests wait or run.
  void began(Duration waited, std::int64_t inside, TimePoint now) {
    ++begun_;
    look(inside, now);
    note(waited, now);
  }
  // One ended after so many tokens; `early`: before it had all that it might have.
  void ended(Duration served, std::int64_t tokens, bool early) {
    const double share = served_ > 0 ? kShare : 1;
    served_ += (to_seconds(served) - served_) * share;
    tokens_ += (static_cast<double>(tokens) - tokens_) * share;
    early_ += ((early ? 1.0 : 0.0) - early_) * share;
  }
  void emptied(TimePoint now) { note(Duration::zero(), now); }
  void refused(TimePoint now) {
    ++refused_;
    last_bad_ = now;
  }

  // Whether requests have begun too late for too long; `first_waited`: how long the next to begin has waited already. Then only those
  // should be taken for which there will be a place soon(), until for a while none was late and none refused. (That chance empties the
  // queue does not end an overload.)
  bool stands(Duration first_waited, std::int64_t inside, TimePoint now) {
    look(inside, now);
    if (late(first_waited)) note(first_waited, now);
    if (first_waited > std::max(target(), seconds_between(kMostServices * served_, 30, 120))) {
      stands_ = true;
      last_bad_ = now;
    }
    if (stands_ && now - last_bad_ >= 2 * window()) stands_ = false;
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
  Duration target() const { return limits_.target != Duration::zero() ? limits_.target : seconds_between(served_ / 10, 0.1, 10); }

 private:
  static constexpr double kShare = 1.0 / 16;      // of the newest in an average
  static constexpr double kPatience = 2.5;        // windows in which requests may begin late in a growing queue
  static constexpr int kRecovery = 5;             // other time gives a fifth of itself back
  static constexpr double kMostServices = 8;      // even in a queue that hardly grows nobody waits longer than these take, at least 30 s
  static constexpr double kMemory = 16;           // windows in which most of a larger number of requests is forgotten
  static constexpr std::int64_t kFewestMore = 3;  // requests that there must be more after a window, and at least
  static constexpr std::int64_t kMoreOf = 8;      // an eighth of those that began

  static Duration seconds_between(double seconds, double least, double most) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::clamp(seconds, least, most)));
  }
  Duration window() const { return seconds_between(served_ / 2, 0.5, 10); }
  bool late(Duration waited) const { return waited > target(); }

  // Once a window: are more requests here than there ever were of late, or would be, had none been refused? A fixed number of clients
  // never is more than itself, however its requests come and go.
  void look(std::int64_t inside, TimePoint now) {
    const auto here = static_cast<double>(inside + refused_);
    if (!window_began_) window_began_ = now;
    peak_ = std::max(peak_, here);
    const Duration since = now - *window_began_;
    if (since < window()) return;
    grows_ = peak_ - level_ >= static_cast<double>(std::max(kFewestMore, begun_ / kMoreOf));
    const double forgotten = std::min(1.0, to_seconds(since) / (kMemory * to_seconds(window())));
    level_ = peak_ > level_ ? peak_ : level_ - (level_ - peak_) * forgotten;
    window_began_ = now;
    peak_ = here;
    begun_ = 0;
  }
  void note(Duration waited, TimePoint now) {
    const Duration since = noted_ ? now - *noted_ : Duration::zero();
    if (late_ && grows_) {
      spent_ += since;
    } else if (!stands_) {
      spent_ = std::max(spent_ - since / kRecovery, Duration::zero());
    }
    noted_ = now;
    late_ = late(waited);
    if (!late_ || !grows_) return;
    last_bad_ = now;
    if (to_seconds(spent_) >= kPatience * to_seconds(window())) stands_ = true;
  }

  WaitLimits limits_;
  double served_ = 0, tokens_ = 0, early_ = 0;  // averages over those that ended: seconds from begin to end, tokens, whether early
  std::optional<TimePoint> window_began_;       // since when the following are counted
  std::int64_t begun_ = 0, refused_ = 0;        // of requests: in the window; in all
  double peak_ = 0, level_ = 0;                 // of requests here and refused ones: in the window; of late
  bool grows_ = false;                          // in the window before
  std::optional<TimePoint> noted_;              // when a wait was noted, and whether it was too long
  bool late_ = false;
  Duration spent_{};  // of the patience
  bool stands_ = false;
  TimePoint last_bad_{};  // when a request was refused or, in a growing queue, late
};

}  // namespace weir::scheduler
