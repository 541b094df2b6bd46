// SPDX-License-Identifier: Apache-2.0
// Who wants to know when a run begins and ends, to look at something else over exactly that time.
#pragma once

#include "base/clock.h"

namespace weir::loadgen {

class RunWatcher {
 public:
  virtual ~RunWatcher() = default;
  virtual void before_start() = 0;            // all is prepared: the run begins when this returns
  virtual void started(TimePoint begin) = 0;  // the moment that all of the run's times count from
  virtual void ended() = 0;                   // the last answer is there; must not block
};

}  // namespace weir::loadgen
