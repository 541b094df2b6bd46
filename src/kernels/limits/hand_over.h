// SPDX-License-Identifier: Apache-2.0
// What it costs to hand work to the thread pool and to wait until all threads have done it: paid several times per layer, so it bounds
// how fast a small model can be.
#pragma once

#include "base/spread.h"

namespace weir::kernels {

struct HandOver {
  int threads = 1;
  Spread spinning_s;  // workers have just finished the run before
  Spread parked_s;    // workers have gone to sleep
};

// Every run waits until each thread has taken its part, so that a run that one thread does alone does not look cheap.
HandOver measure_hand_over(int threads, double seconds = 0.1);

}  // namespace weir::kernels
