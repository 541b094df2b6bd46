// SPDX-License-Identifier: Apache-2.0
// How far a run is, in one line. Read from the run's counters now and then, by a thread of its own: the ones that send notice nothing.
#pragma once

#include <cstdint>
#include <string>

#include "loadgen/runner.h"

namespace weir::loadgen {

struct ProgressView {
  double elapsed_s = 0, length_s = 0;  // length 0: not known
  std::int64_t expected = 0;           // requests in all; 0: not known
  std::int64_t sent = 0, done = 0, failed = 0, waiting = 0, tokens = 0;
  double sent_rate = 0, done_rate = 0, token_rate = 0;          // a second, since the line before
  double ttft_p50 = 0, ttft_p99 = 0, itl_p50 = 0, itl_p99 = 0;  // seconds, of the whole run so far; 0: none yet
};

// Counters turned into rates from one look to the next.
class ProgressWatch {
 public:
  ProgressView look(const Progress& progress, double elapsed_s);

 private:
  std::int64_t sent_ = 0, over_ = 0, tokens_ = 0;
  double at_ = 0;
};

// Seconds that are left, by time or by requests; below 0: not known.
double time_left(const ProgressView& view);
std::string progress_text(const ProgressView& view);

}  // namespace weir::loadgen
