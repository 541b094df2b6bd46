// SPDX-License-Identifier: Apache-2.0
#include "scheduler/scheduler.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "base/check.h"
#include "base/units.h"

namespace weir::scheduler {

struct Scheduler::Sequence {
  explicit Sequence(kvcache::Cache& pools) : cache(pools) {}
  Request request;  // its prompt is the beginning of `tokens`
  Order order;
  std::vector<TokenId> tokens;  // known ones, then guesses
  std::int64_t prompt = 0, known = 0, most = 0;
  kvcache::SequenceCache cache;
  std::int32_t row = -1;                    // in the plan
  std::optional<TimePoint> arrived, began;  // arrived: until it begins for the first time; forks have neither
  bool running = false;

  std::int64_t backlog() const { return known - cache.computed(); }
  std::int64_t soon(std::int64_t block) const { return std::min(known + block, most); }  // tokens to have room for when it starts
  // Waits for one token after the other, and has no more to catch up on than a block: guesses taken back, forced tokens.
  bool streams(std::int64_t block) const { return cache.computed() >= prompt && backlog() <= block; }
};

Status Scheduler::check(const SchedulerOptions& o, const kvcache::Cache& cache) {
  if (o.max_running < 1 || o.max_waiting < 1 || o.max_waiting_tokens < 1)
    return fail(ErrorCode::kInvalidArgument, "{} running and {} waiting requests: at least one each", o.max_running, o.max_waiting);
  const std::int64_t least = std::int64_t{o.max_running} + cache.options().block_tokens;
  if (o.token_budget < least)
    return fail(ErrorCode::kInvalidArgument,
                "a budget of {} tokens for {} sequences: at least {}, for one row each and a block of a prompt", o.token_budget,
                o.max_running, least);
  return {};
}

Scheduler::Scheduler(const SchedulerOptions& options, kvcache::Cache& cache, std::unique_ptr<Policy> policy, const Clock& clock)
    : options_(options),
      cache_(cache),
      policy_(std::move(policy)),
      clock_(clock),
      block_tokens_(cache.options().block_tokens),
      queue_(options.wait) {
  const Status status = check(options, cache);
  WEIR_CHECK(status.has_value(), "{}", status.error().message);
}

Scheduler::~Scheduler() = default;

Result<SeqId> Scheduler::submit(Request request) {
  ++stats_.refused;
  if (request.prompt.empty() || request.max_tokens < 0)
    return fail(ErrorCode::kInvalidArgument, "a prompt of {} tokens and {} to generate", request.prompt.size(), request.max_tokens);
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t most = prompt + request.max_tokens;
  if (most > std::numeric_limits<std::int32_t>::max() / 2) return fail(ErrorCode::kInvalidArgument, "{} tokens are too many", most);
  WEIR_TRY(cache_.check_fits(most));
  const std::int64_t rank = policy_->rank(request, clock_.now());
  WEIR_TRY(check_queue(prompt, rank));
  policy_->accepted(request, rank);
  --stats_.refused;
  ++stats_.submitted;
  Sequence& s = make(std::move(request), rank, {}, prompt);
  s.arrived = clock_.now();
  s.tokens = std::move(s.request.prompt);
  if (s.request.start_by) start_by_.emplace(*s.request.start_by, s.order.id);
  enqueue(s);
  return s.order.id;
}

Status Scheduler::check_queue(std::int64_t prompt, std::int64_t rank) {
  if (!waiting_.empty() && (stats_.waiting_tokens + prompt > options_.max_waiting_tokens || stats_.waiting >= options_.max_waiting))
    return fail(ErrorCode::kExhausted, "the queue is full: {} requests with {} tokens wait, the estimated wait is {}", stats_.waiting,
                stats_.waiting_tokens, format_duration(to_seconds(estimated_wait())));
  const TimePoint now = clock_.now();
  const auto first = waiting_.empty() ? std::nullopt : waiting_.begin()->second->arrived;
  if (!queue_.stands(first ? now - *first : Duration::zero(), requests(), now)) return {};
  const std::int64_t ahead = std::distance(waiting_.begin(), waiting_.upper_bound(Order{rank, next_, next_}));
  const auto left = running_ | std::views::transform([](const Sequence* s) { return s->most - s->known; });
  if (queue_.soon(ahead, left, free_places())) return {};
  queue_.refused(now);
  return fail(ErrorCode::kExhausted, "too many requests: {} wait before this one, and more than {} would pass before it begins; about {}",
              ahead, format_duration(to_seconds(queue_.target())), format_duration(to_seconds(estimated_wait())));
}

// Which nothing but the next step keeps from those who wait: none when there is no memory, or when the prompts ahead take long.
std::int64_t Scheduler::free_places() const {
  if (!waiting_.empty() && waiting_.begin()->second->order.id == blocked_) return 0;
  if (waiting_positions() * times_.prefill_position() > queue_.target()) return 0;
  return options_.max_running - stats_.running;
}

Scheduler::Sequence& Scheduler::make(Request request, std::int64_t rank, SeqId arrival, std::int64_t prompt) {
  const SeqId id(next_.value++);
  Sequence& s = *sequences_.emplace(id, std::make_unique<Sequence>(cache_)).first->second;
  s.request = std::move(request);
  s.order = {rank, arrival.valid() ? arrival : id, id};
  ++requests_[s.order.arrival];
  s.known = s.prompt = prompt;
  s.most = prompt + s.request.max_tokens;
  return s;
}

Scheduler::Sequence* Scheduler::find(SeqId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

void Scheduler::enqueue(Sequence& s) {
  waiting_.emplace(s.order, &s);
  stats_.waiting = static_cast<std::int64_t>(waiting_.size());
  stats_.waiting_tokens += s.known;
}

void Scheduler::dequeue(Sequence& s) {
  waiting_.erase(s.order);
  if (waiting_.empty()) queue_.emptied(clock_.now());
  stats_.waiting = static_cast<std::int64_t>(waiting_.size());
  stats_.waiting_tokens -= s.known;
  if (s.request.start_by) start_by_.erase({*s.request.start_by, s.order.id});
}

// For the first time, not when it goes on after a preemption. Before dequeue().
void Scheduler::begin(Sequence& s) {
  if (!s.arrived) return;
  s.began = clock_.now();
  queue_.began(*s.began - *s.arrived, requests(), *s.began);
  s.arrived.reset();
}

void Scheduler::run(Sequence& s) {
  s.running = true;
  running_.insert(std::ranges::upper_bound(running_, s.order, {}, [](const Sequence* r) { return r->order; }), &s);
  stats_.running = static_cast<std::int64_t>(running_.size());
}

// What it holds is given back.
void Scheduler::stop(Sequence& s) {
  cache_.close(s.cache);
  std::erase(running_, &s);
  stats_.running = static_cast<std::int64_t>(running_.size());
  s.running = false;
}

// Back to the queue, where its rank stands before that of all who came later.
void Scheduler::requeue(Sequence& s) {
  if (s.row >= 0) {
    Row& row = plan_.rows[static_cast<std::size_t>(s.row)];
    (row.phase == Phase::kDecode ? plan_.decode_positions : plan_.prefill_positions) -= static_cast<std::int32_t>(row.tokens.size());
    plan_.rows.erase(plan_.rows.begin() + s.row);
    planned_.erase(planned_.begin() + s.row);
    for (auto i = static_cast<std::size_t>(s.row); i < planned_.size(); ++i) --planned_[i]->row;
    s.row = -1;
  }
  stop(s);
  s.tokens.resize(static_cast<std::size_t>(s.known));
  enqueue(s);
  plan_.preempted.push_back(s.order.id);
  ++stats_.preemptions;
}

void Scheduler::end(Sequence& s) {
  if (s.row >= 0) planned_[static_cast<std::size_t>(s.row)] = nullptr;
  s.running ? stop(s) : dequeue(s);
  if (const auto request = requests_.find(s.order.arrival); --request->second == 0) requests_.erase(request);
  sequences_.erase(s.order.id);
}

bool Scheduler::cancel(SeqId id) {
  Sequence* s = find(id);
  if (s == nullptr) return false;
  ++stats_.cancelled;
  end(*s);
  return true;
}

const StepPlan& Scheduler::plan() {
  WEIR_CHECK(!in_flight_, "two plans without complete() between them");
  in_flight_ = true;
  plan_.number = static_cast<std::uint64_t>(stats_.steps++);
  plan_.rows.clear();
  plan_.preempted.clear();
  plan_.expired.clear();
  plan_.prefill_positions = plan_.decode_positions = 0;
  planned_.clear();
  expire();
  admit();
  const auto streams = std::ranges::count_if(running_, [this](const Sequence* s) { return s->streams(block_tokens_); });
  const bool others = streams < stats_.running;
  plan_streams(options_.token_budget - streams - (others ? block_tokens_ : 0));
  if (others) plan_chunks();
  cache_.take_ops(plan_.memory);
  return plan_;
}

void Scheduler::expire() {
  while (!start_by_.empty() && start_by_.begin()->first <= clock_.now()) {
    plan_.expired.push_back(start_by_.begin()->second);
    ++stats_.expired;
    end(*find(start_by_.begin()->second));
  }
}

// From the queue, in order and without overtaking, those for whom there is room beside what the running ones will take.
void Scheduler::admit() {
  for (bool again = true; again && !waiting_.empty();) {
    Sequence& head = *waiting_.begin()->second;
    const bool full = stats_.running >= options_.max_running;
    const bool overtakes = policy_->preempts() && !running_.empty() && head.order < running_.back()->order;
    if (full && !overtakes) return;
    kvcache::Cache::Promises promises;
    std::int64_t backlog = 0;
    for (const Sequence* s : running_) {
      if (!s->streams(block_tokens_)) backlog += s->backlog();
      cache_.promise(s->cache, s->soon(block_tokens_), promises);
    }
    if (!overtakes && backlog >= options_.token_budget) return;
    again = !full && open(head, promises);
    if (again) {
      begin(head);
      dequeue(head);
      head.request.start_by.reset();
      policy_->started(head.order.rank);
      run(head);
    } else if (overtakes) {
      requeue(*running_.back());
      again = true;
    }
  }
}

bool Scheduler::open(Sequence& s, const kvcache::Cache::Promises& promises) {
  const std::int64_t slack = cache_.slack(promises);
  if (s.order.id == blocked_ && slack <= blocked_slack_) return false;  // not again before something was given back
  if (cache_.open(s.cache, std::span(s.tokens), s.prompt, s.request.salt, !s.request.prompt_logits) &&
      cache_.fits(s.cache, s.soon(block_tokens_), promises))
    return true;
  cache_.close(s.cache);
  blocked_ = s.order.id;
  blocked_slack_ = slack;
  return false;
}

// One row each for sure; `spare` more in all.
void Scheduler::plan_streams(std::int64_t spare) {
  for (std::size_t i = 0; i < running_.size(); ++i) {  // preemptions shorten it behind i
    Sequence& s = *running_[i];
    if (!s.streams(block_tokens_)) continue;
    const std::int64_t wanted = static_cast<std::int64_t>(s.tokens.size()) - s.cache.computed();
    spare -= std::max<std::int64_t>(0, add_row(s, std::min(wanted, 1 + spare), Phase::kDecode) - 1);
  }
}

// The rest of the budget, but no more than leaves the streams their time between tokens; at least a block.
void Scheduler::plan_chunks() {
  std::int64_t left = options_.token_budget - plan_.decode_positions;
  for (const Sequence* s : planned_) {
    const Duration target = s->request.tpot_target;
    if (target <= Duration::zero() || times_.prefill_position() <= Duration::zero()) continue;
    left = std::min(left, std::max<std::int64_t>(block_tokens_, (target - times_.decode_step()) / times_.prefill_position()));
  }
  for (std::size_t i = 0; i < running_.size() && left > 0; ++i) {
    Sequence& s = *running_[i];
    if (s.row >= 0 || s.streams(block_tokens_)) continue;
    const bool prefill = s.cache.computed() < s.prompt;
    std::int64_t wanted = (prefill ? s.prompt : s.known) - s.cache.computed();
    if (prefill && s.request.prompt_logits) wanted = std::min<std::int64_t>(wanted, std::max(options_.logit_rows, 1));
    left -= add_row(s, std::min(wanted, left), prefill ? Phase::kPrefill : Phase::kDecode);
  }
}

// As many rows as there is room for; those behind in the order make room for the first. 0 when it must wait.
std::int64_t Scheduler::add_row(Sequence& s, std::int64_t wanted, Phase phase) {
  const std::int64_t first = s.cache.computed();
  std::int64_t reach = cache_.reach(s.cache);
  for (; reach <= first; reach = cache_.reach(s.cache)) {
    if (running_.back() == &s) return 0;
    requeue(*running_.back());
  }
  std::int64_t count = std::min({wanted, reach - first, cache_.next_checkpoint(s.cache, first) - first});
  std::int64_t drafted = std::max<std::int64_t>(0, first + count - s.known);
  if (drafted > 0 && !cache_.keep_state(s.cache)) {
    count -= drafted;
    drafted = 0;
  }
  cache_.grow(s.cache, first + count);
  const bool all = phase == Phase::kPrefill && s.request.prompt_logits;
  const std::int64_t logits = all ? count : first + count < s.known ? 0 : drafted + 1;
  s.row = static_cast<std::int32_t>(plan_.rows.size());
  planned_.push_back(&s);
  plan_.rows.push_back(
      {.sequence = s.order.id,
       .first_position = static_cast<std::int32_t>(first),
       .phase = phase,
       .logits = static_cast<std::int32_t>(logits),
       .drafted = static_cast<std::int32_t>(drafted),
       .tokens = std::span<const TokenId>(s.tokens).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
       .memory = &s.cache});
  (phase == Phase::kDecode ? plan_.decode_positions : plan_.prefill_positions) += static_cast<std::int32_t>(count);
  return count;
}

void Scheduler::complete(std::span<const RowResult> results, Duration elapsed) {
  WEIR_CHECK(in_flight_ && results.size() == plan_.rows.size(), "{} results for {} rows", results.size(), plan_.rows.size());
  in_flight_ = false;
  if (!results.empty()) times_.record(plan_.prefill_positions, plan_.decode_positions, elapsed);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (planned_[i] != nullptr) settle(*planned_[i], plan_.rows[i], results[i]);
  }
}

void Scheduler::settle(Sequence& s, const Row& row, const RowResult& result) {
  s.row = -1;
  const auto guesses = row.tokens.last(static_cast<std::size_t>(row.drafted));
  const auto right = std::ranges::mismatch(guesses, result.tokens).in1 - guesses.begin();
  const std::int64_t sure = row.first_position + static_cast<std::int64_t>(row.tokens.size()) - row.drafted, end = sure + right;
  WEIR_CHECK(result.tokens.empty() || sure == s.known, "tokens behind position {} of {} of sequence {}", sure, s.known, s.order.id.value);
  s.tokens.resize(static_cast<std::size_t>(s.known));
  s.tokens.insert(s.tokens.end(), result.tokens.begin(), result.tokens.end());
  s.known = static_cast<std::int64_t>(s.tokens.size());
  WEIR_CHECK(result.finished || s.known > end, "sequence {} has no token to go on with", s.order.id.value);
  WEIR_CHECK(s.known <= s.most, "sequence {} has {} tokens of {}", s.order.id.value, s.known, s.most);
  cache_.commit(s.cache, s.tokens, end);
  if (end >= s.prompt) s.request.prompt_logits = false;  // they were had: should it run again, then as any other
  if (!result.finished) return;
  ++stats_.finished;
  times_.record_answer(s.known - s.prompt);
  if (s.began) queue_.ended(clock_.now() - *s.began, s.known - s.prompt, s.known < s.most);
  this->end(s);
}

void Scheduler::abandon() {
  WEIR_CHECK(in_flight_, "no step to abandon");
  in_flight_ = false;
  const std::vector<Sequence*> failed = planned_;
  plan_.preempted.clear();
  for (Sequence* s : failed) {
    if (s == nullptr) continue;
    s->row = -1;
    requeue(*s);
  }
}

void Scheduler::reset() {
  in_flight_ = false;
  running_.clear();
  waiting_.clear();
  start_by_.clear();
  planned_.clear();
  plan_ = {};
  sequences_.clear();
  stats_.running = stats_.waiting = stats_.waiting_tokens = 0;
  requests_.clear();
  blocked_ = {};
}

void Scheduler::propose(SeqId id, std::span<const TokenId> guesses) {
  WEIR_CHECK(!in_flight_, "guesses while a step runs");
  Sequence* s = find(id);
  if (s == nullptr || !s->running) return;
  s->tokens.resize(static_cast<std::size_t>(s->known));
  const std::int64_t most = std::max<std::int64_t>(0, s->most - s->known - 1);  // the token behind them must fit too
  const auto used = guesses.first(std::min(guesses.size(), static_cast<std::size_t>(most)));
  s->tokens.insert(s->tokens.end(), used.begin(), used.end());
}

Result<SeqId> Scheduler::fork(SeqId parent_id, std::int64_t keep, std::span<const TokenId> next) {
  WEIR_CHECK(!in_flight_, "a fork while a step runs");
  Sequence* parent = find(parent_id);
  if (parent == nullptr) return fail(ErrorCode::kNotFound, "sequence {} has ended and cannot be forked", parent_id.value);
  WEIR_CHECK(keep >= parent->prompt && keep <= parent->known && !next.empty(), "a fork at {} of {}", keep, parent->known);
  Sequence& s = make(parent->request, parent->order.rank, parent->order.arrival, parent->prompt);
  s.tokens.assign(parent->tokens.begin(), parent->tokens.begin() + keep);
  s.tokens.insert(s.tokens.end(), next.begin(), next.end());
  s.known = static_cast<std::int64_t>(s.tokens.size());
  const bool shares = parent->running && keep >= parent->cache.computed() && stats_.running < options_.max_running;
  if (shares && cache_.fork(parent->cache, s.cache)) {
    run(s);
  } else {
    enqueue(s);  // it finds what its parent has stored, and runs the rest again
  }
  return s.order.id;
}

std::span<const TokenId> Scheduler::tokens(SeqId id) const {
  const Sequence* s = find(id);
  return s == nullptr ? std::span<const TokenId>() : std::span(s->tokens).first(static_cast<std::size_t>(s->known));
}

// Of prompts, to be computed before one that comes now.
std::int64_t Scheduler::waiting_positions() const {
  std::int64_t positions = stats_.waiting_tokens;
  for (const Sequence* s : running_) positions += s->streams(block_tokens_) ? 0 : s->backlog();
  return positions;
}

// The positions ahead take their time, and every step between them that of a decode step; when all places are taken, those ahead
// and this one wait for answers of average length to end.
Duration Scheduler::estimated_wait() const {
  const std::int64_t positions = waiting_positions();
  const std::int64_t steps = positions / std::max<std::int64_t>(block_tokens_, options_.token_budget - stats_.running);
  const std::int64_t ends = std::max<std::int64_t>(0, stats_.running + stats_.waiting + 1 - options_.max_running);
  return positions * times_.prefill_position() + (steps + ends * times_.answer_tokens() / options_.max_running) * times_.decode_step();
}

}  // namespace weir::scheduler
