// SPDX-License-Identifier: Apache-2.0
// What steps have cost, as the engine measured them: the base of the estimated wait and of how much prefill fits between two tokens.
// Moving averages (a fifth of each new value): an estimate, good to its order of magnitude.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace weir::scheduler {

class StepTimes {
 public:
  void record(std::int64_t prefill_positions, std::int64_t decode_positions, Duration elapsed) {
    if (prefill_positions == 0) return average(decode_step_, elapsed);
    const Duration decode = decode_positions > 0 ? decode_step_ : Duration::zero();
    average(prefill_position_, std::max(Duration(1), (elapsed - decode) / prefill_positions));
  }
  void record_answer(std::int64_t tokens) { average(answer_, tokens * 1000); }

  Duration decode_step() const { return decode_step_; }            // a step of decode rows alone; 0 = not measured yet
  Duration prefill_position() const { return prefill_position_; }  // what a position of prefill adds to it
  std::int64_t answer_tokens() const { return answer_ / 1000; }    // of requests that ended

 private:
  template <class T>
  static void average(T& value, T sample) {
    value = value == T{} ? sample : value + (sample - value) / 5;
  }

  Duration decode_step_{}, prefill_position_{};
  std::int64_t answer_ = 0;  // thousandths
};

}  // namespace weir::scheduler
