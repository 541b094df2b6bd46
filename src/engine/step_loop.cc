// SPDX-License-Identifier: Apache-2.0
#include "engine/step_loop.h"

#include <algorithm>

#include "base/check.h"

namespace weir::engine {
namespace {

constexpr Duration kLongest = std::chrono::hours(24 * 365);  // of all times that a request names: sums must not overflow

}  // namespace

// One answer of a request, with the sequence that computes it.
struct StepLoop::Part {
  Part(Live& owner, Answer a) : live(owner), answer(std::move(a)) {}
  Live& live;
  Answer answer;
  std::optional<grammar::Matcher> matcher;
  SeqId sequence;               // invalid before the answer has one of its own, and after its end
  std::vector<TokenId> fresh;   // tokens of this step
  std::int32_t right = 0;       // guesses of this step that were
  std::vector<Duration> times;  // of all its tokens
  bool streams = false;         // its last row brought a token, so that its next step continues there
};

struct StepLoop::Live {
  CompletionRequest request;
  std::shared_ptr<CompletionChannel> channel;
  std::shared_ptr<const model::Adapter> adapter;
  Timeline timeline;  // of the prompt; each answer's has its own tokens
  TimePoint deadline = TimePoint::max();
  std::int32_t prompt = 0;
  std::vector<std::unique_ptr<Part>> parts;              // one for each answer
  std::size_t open = 0;                                  // parts whose end was not told
  std::vector<sampling::TokenLogprobs> prompt_logprobs;  // not sent yet
  std::int64_t scored = 0;                               // positions of the prompt that have theirs
  StepBreakdown cost;
  bool started = false;
};

StepLoop::StepLoop(StepExecutor& executor, scheduler::Scheduler& scheduler, kvcache::Cache& cache,
                   std::shared_ptr<const tokenizer::Tokenizer> tokenizer, const Clock& clock)
    : executor_(executor), scheduler_(scheduler), cache_(cache), tokenizer_(std::move(tokenizer)), clock_(clock) {}

StepLoop::~StepLoop() = default;

// The answers, each at the start of its grammar.
void StepLoop::open_parts(Live& live, Admission& admission) {
  const CompletionRequest& request = admission.request;
  for (std::int32_t i = 0; i < request.answers; ++i) {
    live.parts.push_back(std::make_unique<Part>(live, Answer(request, request.prompt, i, admission.limit, tokenizer_)));
    if (!admission.matcher) continue;
    auto matcher = i + 1 < request.answers ? admission.matcher->clone() : Result<grammar::Matcher>(std::move(*admission.matcher));
    if (matcher) {
      live.parts.back()->matcher.emplace(std::move(*matcher));
    } else {
      live.parts.back()->answer.end(FinishReason::kFailed, matcher.error());
    }
  }
  if (admission.matcher && !masks_) masks_ = std::make_unique<grammar::MaskWorker>();
}

void StepLoop::admit(Admission admission) {
  live_.push_back(std::make_unique<Live>());  // before all else: recover() ends what is in there
  Live* live = live_.back().get();
  CompletionRequest& request = admission.request;
  live->channel = std::move(admission.channel);
  live->adapter = std::move(admission.adapter);
  live->timeline.queued = admission.queued;
  live->prompt = static_cast<std::int32_t>(request.prompt.size());
  live->open = static_cast<std::size_t>(request.answers);
  for (Duration* span : {&request.time_limit, &request.queue_limit, &request.ttft_target, &request.tpot_target})
    *span = std::min(*span, kLongest);
  if (request.time_limit > Duration::zero()) live->deadline = admission.queued + request.time_limit;
  open_parts(*live, admission);

  scheduler::Request planned{.prompt = std::move(request.prompt),
                             .max_tokens = static_cast<std::int32_t>(admission.limit),
                             .priority = request.priority,
                             .tenant = request.tenant,
                             .salt = std::move(admission.salt),
                             .ttft_target = request.ttft_target,
                             .tpot_target = request.tpot_target,
                             .start_by = {},
                             .prompt_logits = request.prompt_logprobs >= 0};
  if (request.queue_limit > Duration::zero()) planned.start_by = admission.queued + request.queue_limit;
  live->request = std::move(request);
  Result<SeqId> sequence = scheduler_.submit(std::move(planned));
  if (sequence) give_sequence(*live->parts[0], *sequence);
  const bool broken = std::ranges::any_of(live->parts, [](const auto& part) { return part->answer.ended(); });
  if (!sequence || broken) {
    for (auto& part : live->parts)
      end_part(*part, FinishReason::kFailed,
               sequence ? Error{ErrorCode::kExhausted, "another answer's grammar could not be set up"} : sequence.error());
  }
}

bool StepLoop::step() {
  drop_gone();
  const bool work = !scheduler_.idle();
  if (work) {
    propose();
    const TimePoint start = clock_.now();
    const scheduler::StepPlan& plan = scheduler_.plan();
    note_plan(plan);
    run_plan(plan, start);
  }
  send_events();
  return work;
}

void StepLoop::give_sequence(Part& part, SeqId sequence) {
  part.sequence = sequence;
  by_sequence_[sequence] = &part;
  if (!announce_) return;
  sampling::SamplingParams params = part.live.request.sampling;
  params.seed = part.answer.seed();
  announce_(sequence, params, static_cast<std::uint64_t>(part.answer.number()));
}

// The sequence is gone from the scheduler.
void StepLoop::release(Part& part) {
  if (!part.sequence.valid()) return;
  if (speculator_) speculator_->forget(part.sequence);
  by_sequence_.erase(part.sequence);
  part.sequence = SeqId();
}

void StepLoop::end_part(Part& part, FinishReason reason, std::optional<Error> error) {
  if (part.sequence.valid()) scheduler_.cancel(part.sequence);
  release(part);
  part.answer.end(reason, std::move(error));
}

// Guesses for the answers that wait for nothing but their next token.
void StepLoop::propose() {
  if (!speculator_) return;
  views_.clear();
  for (const auto& live : live_) {
    for (const auto& part : live->parts) {
      if (!part->sequence.valid() || !part->streams) continue;
      const std::int64_t most = live->request.speculate ? std::max<std::int64_t>(0, part->answer.left() - 1) : 0;
      views_.push_back({.sequence = part->sequence,
                        .tokens = scheduler_.tokens(part->sequence),
                        .most = static_cast<std::int32_t>(std::min<std::int64_t>(most, 1 << 20)),
                        .prompt = live->prompt});
    }
  }
  const auto drafts = speculator_->propose(views_, record_.prefill_positions, [this](SeqId id, std::span<const TokenId> guesses) {
    auto& matcher = by_sequence_.at(id)->matcher;
    return matcher ? matcher->validate(guesses).value_or(0) : guesses.size();
  });
  for (const speculation::Draft& draft : drafts) scheduler_.propose(draft.sequence, draft.guesses);
}

// Readers that have gone, and requests whose time is over.
void StepLoop::drop_gone() {
  const TimePoint now = clock_.now();
  for (auto& live : live_) {
    const bool late = now >= live->deadline;
    if (!late && !live->channel->cancelled()) continue;
    std::optional<Error> error;
    if (late)
      error = Error{ErrorCode::kDeadline, fmt::format("the request's limit of {:.3f} s is over", to_seconds(live->request.time_limit))};
    for (auto& part : live->parts) end_part(*part, FinishReason::kCancelled, error);
  }
}

// What the scheduler did beside rows.
void StepLoop::note_plan(const scheduler::StepPlan& plan) {
  for (const SeqId id : plan.expired) {
    Part& part = *by_sequence_.at(id);
    Live& live = part.live;
    const Error error{ErrorCode::kDeadline,
                      fmt::format("the request waited {:.3f} s without beginning to run", to_seconds(live.request.queue_limit))};
    for (auto& each : live.parts) end_part(*each, FinishReason::kCancelled, error);
  }
  for (const SeqId id : plan.preempted) {
    Part& part = *by_sequence_.at(id);
    ++part.live.timeline.preemptions;
    part.streams = false;
  }
  for (const scheduler::Row& row : plan.rows) {
    Live& live = by_sequence_.at(row.sequence)->live;
    if (live.started) continue;
    live.started = true;
    live.timeline.started = clock_.now() - live.timeline.queued;
    live.timeline.cached_tokens = row.first_position;
    totals_.prompt_tokens += live.prompt;
  }
}

// The masks that will be needed of all tokens, on another thread while the model runs. Guesses are verified one after the other, so
// theirs are computed when it is their turn.
void StepLoop::start_masks(const scheduler::StepPlan& plan) {
  mask_jobs_.clear();
  for (const scheduler::Row& row : plan.rows) {
    Part& part = *by_sequence_.at(row.sequence);
    if (row.logits > 0 && part.matcher && part.answer.needs_masks()) mask_jobs_.push_back({.matcher = &*part.matcher});
  }
  if (!mask_jobs_.empty()) masks_->start(mask_jobs_);
}

void StepLoop::run_plan(const scheduler::StepPlan& plan, TimePoint start) {
  contexts_.clear();
  for (const scheduler::Row& row : plan.rows) {
    const Live& live = by_sequence_.at(row.sequence)->live;
    contexts_.push_back({.rope_length = live.prompt, .adapter = live.adapter.get()});
  }
  start_masks(plan);
  const auto logits = executor_.run(plan, contexts_);
  if (!mask_jobs_.empty()) masks_->wait();
  const TimePoint computed = clock_.now();
  if (!logits) return fail_rows(plan, logits.error());

  record_ = {.number = plan.number,
             .sequences = static_cast<std::int32_t>(plan.rows.size()),
             .prefill_positions = plan.prefill_positions,
             .decode_positions = plan.decode_positions,
             .forward = computed - start};
  settle_rows(plan, *logits);
  const TimePoint end = clock_.now();
  record_.choosing = end - computed;
  record_.elapsed = end - start;
  share_cost(plan);
  tell_speculator(plan);
  scheduler_.complete(results_, record_.elapsed);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    if (results_[i].finished) release(*by_sequence_.at(plan.rows[i].sequence));
  }
  for (Live* live : to_fork_) fork(*live);
  to_fork_.clear();
  totals_.busy += record_.elapsed;
  if (observer_ && !plan.rows.empty()) observer_(record_);
}

// Decode rows on all threads, since each touches its own answer only; then the prompts' rows, which may open answers.
void StepLoop::settle_rows(const scheduler::StepPlan& plan, kernels::ConstMatrix logits) {
  results_.assign(plan.rows.size(), {});
  verified_.clear();
  first_logits_.assign(1, 0);
  for (const scheduler::Row& row : plan.rows) {
    first_logits_.push_back(first_logits_.back() + row.logits);
    by_sequence_.at(row.sequence)->fresh.clear();
  }
  const auto rows_of = [&](std::size_t i) { return logits.row_range(first_logits_[i], plan.rows[i].logits); };
  executor_.for_each(static_cast<std::int64_t>(plan.rows.size()), [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(at);
    const scheduler::Row& row = plan.rows[i];
    if (row.phase != scheduler::Phase::kDecode || row.logits == 0) return;
    Part& part = *by_sequence_.find(row.sequence)->second;
    try {
      next_tokens(part, row, rows_of(i));
    } catch (const std::exception& e) {
      part.answer.end(FinishReason::kFailed, Error{ErrorCode::kInternal, e.what()});
    }
  });
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const scheduler::Row& row = plan.rows[i];
    if (row.phase == scheduler::Phase::kPrefill) settle_prefill(row, rows_of(i));
    const Part& part = *by_sequence_.at(row.sequence);  // a prompt's end may have given the sequence to another answer
    if (row.phase == scheduler::Phase::kDecode) count_row(row, part);
    results_[i] = {.tokens = part.fresh, .finished = part.answer.ended()};
  }
}

// What the step took, to those that took part.
void StepLoop::share_cost(const scheduler::StepPlan& plan) {
  const StepBreakdown* step = executor_.breakdown();
  if (step == nullptr || plan.rows.empty()) return;
  totals_.cost += *step;
  const double all = plan.prefill_positions + plan.decode_positions;
  for (const scheduler::Row& row : plan.rows)
    by_sequence_.at(row.sequence)->live.cost.add_share(*step, static_cast<double>(row.tokens.size()) / all);
}

void StepLoop::count_row(const scheduler::Row& row, const Part& part) {
  totals_.generated_tokens += static_cast<std::int64_t>(part.fresh.size());
  if (row.drafted == 0) return;
  record_.drafted += row.drafted;
  record_.accepted += part.right;
  verified_.push_back({.sequence = row.sequence, .drafted = row.drafted, .right = part.right});
}

void StepLoop::tell_speculator(const scheduler::StepPlan& plan) {
  if (!speculator_ || plan.rows.empty()) return;
  speculator_->completed(
      {.decode_rows = plan.decode_positions, .prefill_rows = plan.prefill_positions, .elapsed = record_.elapsed, .verified = verified_});
}

// The step's rows are lost: their requests end with the error, all others go on.
void StepLoop::fail_rows(const scheduler::StepPlan& plan, const Error& error) {
  ++totals_.failed_steps;
  std::vector<SeqId> rows;
  for (const scheduler::Row& row : plan.rows) rows.push_back(row.sequence);
  scheduler_.abandon();
  for (const SeqId id : rows) {
    const auto found = by_sequence_.find(id);
    if (found == by_sequence_.end()) continue;  // another answer's row took it along
    for (auto& part : found->second->live.parts) end_part(*part, FinishReason::kFailed, error);
  }
}

void StepLoop::settle_prefill(const scheduler::Row& row, kernels::ConstMatrix logits) {
  Part& part = *by_sequence_.at(row.sequence);
  Live& live = part.live;
  const std::int32_t end = row.first_position + static_cast<std::int32_t>(row.tokens.size());
  live.timeline.chunks.push_back({row.first_position, static_cast<std::int32_t>(row.tokens.size()), clock_.now() - live.timeline.queued});
  if (live.request.prompt_logprobs >= 0) prompt_logprobs(live, row, logits);
  if (row.logits == 0 || end < live.prompt) return;
  if (live.request.prompt_only) {
    part.answer.end(FinishReason::kLength);
  } else if (part.answer.generated() == 0) {
    first_tokens(live, logits.row_span(logits.rows - 1), static_cast<std::uint64_t>(end));
  }
}

// Row r holds what follows position first_position + r.
void StepLoop::prompt_logprobs(Live& live, const scheduler::Row& row, kernels::ConstMatrix logits) {
  const auto tokens = scheduler_.tokens(row.sequence);
  for (std::int64_t r = 0; r < logits.rows; ++r) {
    const std::int64_t next = row.first_position + r + 1;
    if (next >= live.prompt || next <= live.scored) continue;  // run again after a preemption
    live.scored = next;
    live.prompt_logprobs.push_back(
        sampling::token_logprobs(logits.row_span(r), tokens[static_cast<std::size_t>(next)], live.request.prompt_logprobs));
  }
}

// The prompt is computed: every answer draws its first token from the same logits. The sequence goes on with the first answer that does not
// end at once; the others are forked from it after the step.
void StepLoop::first_tokens(Live& live, std::span<const float> logits, std::uint64_t position) {
  Part& owner = *live.parts[0];
  for (auto& part : live.parts) {
    part->fresh.clear();
    if (part->answer.ended()) continue;
    if (const auto drawn = draw(*part, logits, position); !drawn) part->answer.end(FinishReason::kFailed, drawn.error());
  }
  live.timeline.first_token = clock_.now() - live.timeline.queued;
  for (auto& part : live.parts) {
    add_forced(*part);
    totals_.generated_tokens += static_cast<std::int64_t>(part->fresh.size());
  }
  const auto heir = std::ranges::find_if(live.parts, [](const auto& part) { return !part->answer.ended(); });
  if (heir == live.parts.end()) return;
  const SeqId sequence = std::exchange(owner.sequence, SeqId());
  give_sequence(**heir, sequence);
  (*heir)->streams = true;
  if (live.parts.size() > 1) to_fork_.push_back(&live);
}

// The guesses that turn out right, and the token behind them: each row's token is what plain decoding would draw there, or what a
// grammar forces; while these are the guesses, the next row has seen the right tokens and counts too.
void StepLoop::next_tokens(Part& part, const scheduler::Row& row, kernels::ConstMatrix logits) const {
  part.streams = true;
  part.right = 0;
  if (part.answer.ended()) return;
  const auto guesses = row.tokens.last(static_cast<std::size_t>(row.drafted));
  const std::uint64_t position = static_cast<std::uint64_t>(row.first_position) + row.tokens.size() - guesses.size();
  const std::int64_t first = logits.rows - row.drafted - 1;
  std::size_t right = 0;
  do {
    const std::size_t i = part.fresh.size();
    if (const Status drawn = draw(part, logits.row_span(first + static_cast<std::int64_t>(i)), position + i); !drawn)
      part.answer.end(FinishReason::kFailed, drawn.error());
    add_forced(part);
    right = static_cast<std::size_t>(std::ranges::mismatch(part.fresh, guesses).in2 - guesses.begin());
  } while (!part.answer.ended() && right == part.fresh.size());
  part.right = static_cast<std::int32_t>(right);
  part.answer.drafted += row.drafted;
  part.answer.accepted += part.right;
}

// Draws a token and appends it.
Status StepLoop::draw(Part& part, std::span<const float> logits, std::uint64_t position) const {
  WEIR_ASSIGN(const TokenId id, part.matcher ? part.answer.choose(logits, position, *part.matcher) : part.answer.choose(logits, position));
  part.answer.add_logprobs(logits, id);
  part.fresh.push_back(id);
  part.times.push_back(clock_.now() - part.live.timeline.queued);
  part.answer.take(id);
  return {};
}

// Tokens that the grammar leaves no choice of: they run as one chunk. Where logprobs are wanted every token needs logits of its own.
void StepLoop::add_forced(Part& part) const {
  if (!part.matcher || part.answer.ended()) return;
  grammar::Matcher& matcher = *part.matcher;
  const auto add = [&]() -> Status {
    if (part.answer.wants_logprobs()) return {};
    WEIR_ASSIGN(const std::vector<TokenId> forced, matcher.forced());
    for (const TokenId id : forced) {
      WEIR_TRY(matcher.accept(id));
      part.fresh.push_back(id);
      part.times.push_back(clock_.now() - part.live.timeline.queued);
      if (part.answer.take_forced(id)) return {};
    }
    return {};
  };
  if (const Status status = add(); !status) part.answer.end(FinishReason::kFailed, status.error());
  if (matcher.must_end()) part.answer.end(FinishReason::kStop);
}

void StepLoop::fork(Live& live) {
  const auto heir = std::ranges::find_if(live.parts, [](const auto& part) { return part->sequence.valid(); });
  if (heir == live.parts.end()) return;  // none goes on
  for (auto& part : live.parts) {
    if (part == *heir || part->answer.ended()) continue;
    const auto sequence = scheduler_.fork((*heir)->sequence, live.prompt, part->fresh);
    if (!sequence) {
      part->answer.end(FinishReason::kFailed, sequence.error());
      continue;
    }
    give_sequence(*part, *sequence);  // perhaps it waits for its turn
  }
}

void StepLoop::send_events() {
  for (auto& live : live_) {
    for (auto& part : live->parts) send(*part);
    live->channel->flush();
    if (live->open == 0) live->channel->close();
  }
  std::erase_if(live_, [](auto& live) { return live->open == 0; });
}

void StepLoop::send(Part& part) {
  Live& live = part.live;
  auto event = part.answer.take_event();
  if (!event) return;
  if (event->finish) {
    --live.open;
    event->last = live.open == 0;
    Timeline& timeline = event->finish->timeline;
    timeline = live.timeline;
    timeline.finished = clock_.now() - live.timeline.queued;
    timeline.tokens = std::move(part.times);
    event->finish->cost = live.cost;
    if (event->finish->reason == FinishReason::kFailed) ++totals_.failed;
    totals_.drafted_tokens += event->finish->drafted;
    totals_.accepted_tokens += event->finish->accepted;
    totals_.forced_tokens += event->finish->forced;
  }
  if (part.answer.number() == 0) event->prompt_logprobs = std::exchange(live.prompt_logprobs, {});
  live.channel->send(std::move(*event));
}

void StepLoop::end_all(FinishReason reason, const Error& error) {
  for (auto& live : live_) {
    for (auto& part : live->parts) end_part(*part, reason, error);
  }
  send_events();
}

void StepLoop::recover(const Error& error) {
  if (masks_) masks_->wait();
  mask_jobs_.clear();
  to_fork_.clear();
  for (auto& live : live_) {
    for (auto& part : live->parts) release(*part);
  }
  scheduler_.reset();
  // The memory may lack what the books say of it, as its operations may not have been carried out.
  cache_.forget_all();
  end_all(FinishReason::kFailed, error);
  for (auto& live : live_) {  // their last events were lost on the way
    live->channel->send({.finish = Finish{.reason = FinishReason::kFailed, .error = error}, .last = true});
    live->channel->close();
  }
  live_.clear();
}

void StepLoop::fill(ServiceStats& stats) const {
  const bool in_step = stats.in_step;
  stats = totals_;
  stats.in_step = in_step;
  stats.scheduler = scheduler_.stats();
  stats.cache = cache_.stats();
  stats.estimated_wait = scheduler_.estimated_wait();
  stats.last_step = record_;
  stats.open_requests = open_requests();
}

}  // namespace weir::engine
