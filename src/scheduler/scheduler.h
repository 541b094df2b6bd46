// SPDX-License-Identifier: Apache-2.0
// Decides what each step runs: sequences that stream get their next row first, prompts and resumed sequences fill the rest of the
// token budget in chunks, in the order of the policy. A sequence is its tokens and how many of them are computed; prefill,
// decode, verification of guesses, forced tokens and replays after a preemption are all "run what is not computed yet". One thread
// owns it; it reads no clock but the one it was given and no random numbers: same calls, same plans.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "scheduler/policy.h"
#include "scheduler/standing_queue.h"
#include "scheduler/step_plan.h"
#include "scheduler/step_times.h"

namespace weir::scheduler {

struct SchedulerOptions {
  std::int32_t token_budget = 512;  // positions in one step; at least max_running and one block
  std::int32_t max_running = 64;
  std::int32_t max_waiting = 1024;
  std::int64_t max_waiting_tokens = 4 << 20;  // prompts in the queue together
  WaitLimits wait = {};                       // by default the queue is bounded by its length alone
  std::int32_t logit_rows = 128;              // of a prompt's chunk whose positions all want logits: each is as wide as the vocabulary
};

struct SchedulerStats {
  std::int64_t waiting = 0, running = 0, waiting_tokens = 0;                                                      // now
  std::int64_t submitted = 0, refused = 0, expired = 0, finished = 0, cancelled = 0, preemptions = 0, steps = 0;  // since the start
};

class Scheduler {
 public:
  static Status check(const SchedulerOptions& options, const kvcache::Cache& cache);
  Scheduler(const SchedulerOptions& options, kvcache::Cache& cache, std::unique_ptr<Policy> policy, const Clock& clock);
  ~Scheduler();

  // kInvalidArgument for what can never run here, with the reason; kExhausted when the queue is full or would only grow (WaitLimits), with
  // the estimated wait.
  Result<SeqId> submit(Request request);
  // At any stage; what it held is available at once. False when it has ended before.
  bool cancel(SeqId sequence);

  // The next step. Its rows run, then complete() or abandon() follows; nothing else may be called before they have run.
  const StepPlan& plan();
  // One result for each row of the plan, in its order. A row that reaches the end of the known tokens must bring a token or end.
  void complete(std::span<const RowResult> results, Duration elapsed);
  // The step failed after its memory operations: its sequences run again from what is sure.
  void abandon();
  // Forgets all sequences, in whatever state an exception has left it.
  void reset();

  // Between steps. Guesses of the tokens that follow, to be verified in the next step as far as budget and blocks allow.
  void propose(SeqId sequence, std::span<const TokenId> guesses);
  // A second sequence: the first `keep` tokens of the parent (its prompt at least), then `next`. What both have computed is shared. It
  // was accepted with its parent: a full queue does not refuse it. It stands in the
  // order where its parent does. kNotFound when the parent has ended.
  Result<SeqId> fork(SeqId parent, std::int64_t keep, std::span<const TokenId> next);

  std::span<const TokenId> tokens(SeqId sequence) const;  // prompt and answer so far; empty when it has ended
  bool idle() const { return sequences_.empty(); }
  Duration estimated_wait() const;  // of a request that comes now, from measured steps; 0 when nothing was measured
  const SchedulerStats& stats() const { return stats_; }

 private:
  struct Sequence;
  struct Order {
    std::int64_t rank = 0;
    SeqId arrival, id;  // arrival: the first sequence of the request
    friend auto operator<=>(const Order&, const Order&) = default;
  };

  Sequence& make(Request request, std::int64_t rank, SeqId arrival, std::int64_t prompt);
  Sequence* find(SeqId id) const;
  void enqueue(Sequence& s);
  void dequeue(Sequence& s);
  void run(Sequence& s);
  void stop(Sequence& s);
  void requeue(Sequence& s);
  void end(Sequence& s);
  void expire();
  void admit();
  Status check_queue(std::int64_t prompt, std::int64_t rank);
  std::int64_t free_places() const;
  std::int64_t requests() const { return static_cast<std::int64_t>(requests_.size()); }
  std::int64_t waiting_positions() const;
  void begin(Sequence& s);
  bool open(Sequence& s, const kvcache::Cache::Promises& promises);
  void plan_streams(std::int64_t spare);
  void plan_chunks();
  std::int64_t add_row(Sequence& s, std::int64_t wanted, Phase phase);
  void settle(Sequence& s, const Row& row, const RowResult& result);

  SchedulerOptions options_;
  kvcache::Cache& cache_;
  std::unique_ptr<Policy> policy_;
  const Clock& clock_;
  std::int32_t block_tokens_;
  std::unordered_map<SeqId, std::unique_ptr<Sequence>> sequences_;
  std::unordered_map<SeqId, std::int32_t> requests_;  // by arrival: sequences of it, forks included
  std::map<Order, Sequence*> waiting_;
  std::set<std::pair<TimePoint, SeqId>> start_by_;
  std::vector<Sequence*> running_;  // by order
  std::vector<Sequence*> planned_;  // of plan_.rows; null when it has ended since
  StepPlan plan_;
  bool in_flight_ = false;
  StepTimes times_;
  StandingQueue queue_;
  SchedulerStats stats_;
  SeqId next_{0}, blocked_;  // blocked_: did not fit when so much was left
  std::int64_t blocked_slack_ = 0;
};

}  // namespace weir::scheduler
