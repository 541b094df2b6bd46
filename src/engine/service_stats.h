// SPDX-License-Identifier: Apache-2.0
// The state of an engine in numbers, as of its last step: what dashboards, health checks and routers read.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "engine/step_cost.h"
#include "kvcache/cache.h"
#include "scheduler/scheduler.h"

namespace weir::engine {

// One step, for whoever keeps histograms.
struct StepRecord {
  std::uint64_t number = 0;
  std::int32_t sequences = 0;
  std::int32_t prefill_positions = 0, decode_positions = 0;  // guesses are among the latter
  std::int32_t drafted = 0, accepted = 0;
  Duration elapsed{};   // the whole step; of it
  Duration forward{};   // in the model
  Duration choosing{};  // from logits to tokens
};

struct ServiceStats {
  std::int64_t open_requests = 0;  // not ended yet, those that wait included
  scheduler::SchedulerStats scheduler;
  kvcache::CacheStats cache;
  std::int64_t prompt_tokens = 0;  // since the start: of requests that began to run
  std::int64_t generated_tokens = 0;
  std::int64_t drafted_tokens = 0, accepted_tokens = 0, forced_tokens = 0;
  std::int64_t failed = 0;  // answers that ended with an error
  std::int64_t failed_steps = 0;
  Duration busy{};            // in steps
  Duration estimated_wait{};  // of a request that comes now
  StepBreakdown cost;         // of all steps, by kind of operation
  StepRecord last_step;
  TimePoint last_beat{};  // when the loop was last seen going round; it does so at least once a second, or a step takes longer
  bool in_step = false;
};

}  // namespace weir::engine
