// SPDX-License-Identifier: Apache-2.0
// Who goes first. A policy ranks a request once, when it arrives; the order never changes after. Lower ranks are admitted first, get
// the budget first and are preempted last. Two properties follow for every policy whose ranks grow with time: the first in the
// order always advances (no deadlock, no endless preemption), and everybody becomes the first (no starvation).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "scheduler/request.h"

namespace weir::scheduler {

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::int64_t rank(const Request& request, TimePoint now) const = 0;  // ties: the earlier request
  virtual void accepted(const Request& /*request*/, std::int64_t /*rank*/) {}
  virtual void started(std::int64_t /*rank*/) {}
  // A waiting request takes the place of a running one of higher rank instead of waiting for its end.
  virtual bool preempts() const { return false; }
};

std::unique_ptr<Policy> first_come();
// Each level of priority is worth `aging` of waiting: a request overtakes those that came up to that much earlier.
std::unique_ptr<Policy> by_priority(Duration aging = std::chrono::seconds(30));
// Earliest deadline of the first token first; requests without a target have `relaxed`.
std::unique_ptr<Policy> by_deadline(Duration relaxed = std::chrono::seconds(60));
// Start-time fair queueing (Goyal et al., SIGCOMM 1996) over tokens of prompt and answer: tenants with work get shares by
// weight (1 when not named), however many requests each of them sends.
std::unique_ptr<Policy> fair_share(std::unordered_map<std::string, double> weights = {});

}  // namespace weir::scheduler
