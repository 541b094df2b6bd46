// SPDX-License-Identifier: Apache-2.0
// Computes masks on a thread of its own while the forward pass runs: the engine hands over the matchers of all constrained
// sequences after sampling, runs the pass, and collects. Between start() and wait() the matchers belong to the worker.
#pragma once

#include <memory>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "grammar/matcher.h"

namespace weir::grammar {

struct MaskJob {
  Matcher* matcher = nullptr;
  std::span<const TokenId> guesses = {};  // of a draft: their masks too (Matcher::compute_masks)
  Status status = {};                     // set by the worker
};

class MaskWorker {
 public:
  MaskWorker();
  ~MaskWorker();  // waits for what has been started
  MaskWorker(const MaskWorker&) = delete;
  MaskWorker& operator=(const MaskWorker&) = delete;

  // The jobs, their matchers (each once) and guesses stay untouched until wait() returns. One batch at a time: one caller.
  void start(std::span<MaskJob> jobs);
  // Takes part in what is left, then returns. Afterwards each job's status is set and Matcher::mask_at() holds its masks.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::grammar
