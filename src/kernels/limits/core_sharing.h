// SPDX-License-Identifier: Apache-2.0
// Do two processors of the system share a core? Measured, since a virtual machine may be told anything: two threads that share one do
// no more multiply-adds than one thread does alone.
#pragma once

#include <vector>

namespace weir::kernels {

struct PairSpeed {
  int first = 0, second = 0;  // processors, as the system numbers them
  double speed = 0;           // of both at once, in units of `first` alone: about 2 on cores of their own, 1 on a shared one
  bool shares_core() const { return speed < 1.5; }
};

// The processors that this process may run on, ascending.
std::vector<int> allowed_processors();

// The first allowed processor with each other one, at most `most` pairs. Empty when the process may use only one.
std::vector<PairSpeed> measure_core_sharing(int most = 32);

}  // namespace weir::kernels
