// SPDX-License-Identifier: Apache-2.0
// Continuous batching without threads: takes requests in, runs one step after the other (plan, forward pass, choice of tokens),
// sends events out. It owns all state of all requests; the Engine puts a thread around it, tests drive it by hand.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/answer.h"
#include "engine/completion_channel.h"
#include "engine/service_stats.h"
#include "engine/step_executor.h"
#include "grammar/mask_worker.h"
#include "scheduler/scheduler.h"
#include "speculation/speculator.h"

namespace weir::engine {

// A checked request with what its fields name already looked up.
struct Admission {
  CompletionRequest request;
  std::shared_ptr<CompletionChannel> channel;
  std::optional<grammar::Matcher> matcher;        // at the start of its grammar
  std::shared_ptr<const model::Adapter> adapter;  // null: none
  std::string salt;                               // prefixes are shared among equal ones only
  std::int64_t limit = 0;                         // tokens of each answer at most
  TimePoint queued{};
};

class StepLoop {
 public:
  // All must outlive it; `tokenizer` may be null.
  StepLoop(StepExecutor& executor, scheduler::Scheduler& scheduler, kvcache::Cache& cache,
           std::shared_ptr<const tokenizer::Tokenizer> tokenizer, const Clock& clock);
  // From now on guesses are verified where they pay.
  void speculate(std::unique_ptr<speculation::Speculator> speculator) { speculator_ = std::move(speculator); }
  ~StepLoop();

  // Told how each sequence draws, its seed filled in, as soon as it is known: for sources of guesses that draw alike.
  using Announce = std::function<void(SeqId, const sampling::SamplingParams&, std::uint64_t stream)>;
  void announce_to(Announce announce) { announce_ = std::move(announce); }

  // Refusals by the scheduler come as the request's last event.
  void admit(Admission admission);

  // Looks at cancellations and limits of time, then runs a step if there is anything to run. False when nothing is left to do but
  // to wait for requests.
  bool step();

  // Every request ends now, with this reason.
  void end_all(FinishReason reason, const Error& error);
  // After an exception, wherever it came from: every request fails, and nothing of what was there before is relied on.
  void recover(const Error& error);

  std::int64_t open_requests() const { return static_cast<std::int64_t>(live_.size()); }
  void fill(ServiceStats& stats) const;
  void on_step(std::function<void(const StepRecord&)> observer) { observer_ = std::move(observer); }

 private:
  struct Live;
  struct Part;

  void open_parts(Live& live, Admission& admission);
  void drop_gone();
  void give_sequence(Part& part, SeqId sequence);
  void end_part(Part& part, FinishReason reason, std::optional<Error> error);
  void release(Part& part);
  void propose();
  void note_plan(const scheduler::StepPlan& plan);
  void start_masks(const scheduler::StepPlan& plan);
  void run_plan(const scheduler::StepPlan& plan, TimePoint start);
  void settle_rows(const scheduler::StepPlan& plan, kernels::ConstMatrix logits);
  void fail_rows(const scheduler::StepPlan& plan, const Error& error);
  void settle_prefill(const scheduler::Row& row, kernels::ConstMatrix logits);
  void prompt_logprobs(Live& live, const scheduler::Row& row, kernels::ConstMatrix logits);
  void first_tokens(Live& live, std::span<const float> logits, std::uint64_t position);
  void next_tokens(Part& part, const scheduler::Row& row, kernels::ConstMatrix logits) const;
  Status draw(Part& part, std::span<const float> logits, std::uint64_t position) const;
  void add_forced(Part& part) const;
  void share_cost(const scheduler::StepPlan& plan);
  void count_row(const scheduler::Row& row, const Part& part);
  void fork(Live& live);
  void tell_speculator(const scheduler::StepPlan& plan);
  void send_events();
  void send(Part& part);

  StepExecutor& executor_;
  scheduler::Scheduler& scheduler_;
  kvcache::Cache& cache_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  const Clock& clock_;
  std::function<void(const StepRecord&)> observer_;
  Announce announce_;

  std::vector<std::unique_ptr<Live>> live_;  // in order of arrival
  std::unordered_map<SeqId, Part*> by_sequence_;
  std::vector<Live*> to_fork_;
  std::unique_ptr<speculation::Speculator> speculator_;
  std::unique_ptr<grammar::MaskWorker> masks_;  // from the first grammar on

  // One step's; kept between steps so that a steady state allocates little.
  std::vector<RowContext> contexts_;
  std::vector<scheduler::RowResult> results_;
  std::vector<std::int64_t> first_logits_;  // of each row
  std::vector<grammar::MaskJob> mask_jobs_;
  std::vector<speculation::SequenceView> views_;
  std::vector<speculation::Verified> verified_;
  StepRecord record_;
  ServiceStats totals_;
};

}  // namespace weir::engine
