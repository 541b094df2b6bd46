// SPDX-License-Identifier: Apache-2.0
// Time is injected: whatever measures or waits takes a Clock, so that tests and the simulator run on a fake one.
#pragma once

#include <chrono>

namespace weir {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;  // monotonic
};

// The machine's monotonic clock; one instance for the process.
const Clock& steady_clock();

// Stands still until told to move.
class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace weir
