// SPDX-License-Identifier: Apache-2.0
// Sends a plan's requests at their moments and records what comes back. An open loop never waits for the server: what is due is sent, or,
// when the user capped the connections, waits in a queue while its latency, which counts from the scheduled moment, grows.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "loadgen/plan.h"
#include "loadgen/progress_sketch.h"
#include "loadgen/records.h"
#include "loadgen/run_watcher.h"
#include "loadgen/target.h"

namespace weir::loadgen {

struct RunOptions {
  std::int64_t max_concurrency = 0;    // requests at a time, the others wait; 0: no cap
  std::int64_t warm_connections = 64;  // opened before the start, as far as the plan can use them
  int threads = 1;
  Duration timeout = std::chrono::minutes(10);  // of a request, from sending
  Duration drain = std::chrono::minutes(10);    // after the last arrival; what is not answered then is unfinished
  Duration spin = std::chrono::microseconds(60);
  RunWatcher* watcher = nullptr;  // null: nobody
};

// Read by others while a run goes on.
struct Progress {
  std::atomic<std::int64_t> sent{0}, done{0}, failed{0}, tokens{0}, waiting{0};
  std::atomic<bool> stop{false};  // set it to end the run early
  LatencySketch ttft, itl;
};

void raise_file_limit();  // of the process, as far as it may

// Fails when not even one connection can be made. Errors of requests are in their records.
Result<RunResult> run(const LoadPlan& plan, const Target& target, const RunOptions& options, Progress& progress);

}  // namespace weir::loadgen
