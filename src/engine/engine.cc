// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <exception>
#include <future>

#include "base/log.h"
#include "base/system_memory.h"
#include "engine/draft_model.h"
#include "engine/model_executor.h"
#include "grammar/grammar_cache.h"
#include "speculation/lookup_source.h"

namespace weir::engine {
namespace {

constexpr std::size_t kHandOver = 4096;  // requests on their way to the thread
constexpr std::size_t kQuestions = 64;
constexpr Duration kBeat = std::chrono::milliseconds(500);
constexpr Duration kSaving = std::chrono::seconds(10);  // at a stop
constexpr std::int64_t kUnknownContext = 4096;
constexpr Duration kLongestErrand = std::chrono::hours(1);  // more would overflow the end of the wait

Result<std::unique_ptr<scheduler::Policy>> make_policy(const std::string& name) {
  if (name == "first-come") return scheduler::first_come();
  if (name == "priority") return scheduler::by_priority();
  if (name == "deadline") return scheduler::by_deadline();
  if (name == "fair-share") return scheduler::fair_share();
  return fail(ErrorCode::kInvalidArgument, "the policy can be first-come, priority, deadline or fair-share, not '{}'", name);
}

std::int64_t model_context(const model::Traits& traits) {
  std::int64_t most = traits.max_context > 0 ? traits.max_context : kUnknownContext;
  if (traits.max_positions > 0) most = std::min<std::int64_t>(most, traits.max_positions);
  return most;
}

CacheBudget budget_of(const model::Traits& traits, const EngineOptions& options, DType kv_type, bool phases_differ) {
  CacheBudget budget{.tokens = options.cache_tokens,
                     .bytes = options.cache_bytes,
                     .sequences = options.max_running,
                     .step_rows = options.token_budget,
                     .prefix_cache = options.prefix_cache,
                     .phases_differ = phases_differ,
                     .kv_type = kv_type};
  if (budget.tokens > 0 || budget.bytes > 0) return budget;
  constexpr std::int64_t kSequences = 4;
  const std::int64_t context = options.context > 0 ? options.context : model_context(traits);
  budget.tokens = kSequences * context;
  budget.bytes = available_memory().value_or(4ull << 30) / 4;
  return budget;
}

Status check_options(const LoadedModel& loaded, const EngineOptions& o) {
  if (loaded.model->traits().encoder)
    return fail(ErrorCode::kUnsupported, "{} is an encoder: it has embeddings and scores, and generates no text", loaded.path.string());
  if (o.context < 0 || o.cache_tokens < 0 || o.max_running < 1 || o.max_running > 4096 || o.max_waiting < 1 ||
      o.max_wait < Duration::zero())
    return fail(ErrorCode::kInvalidArgument, "a context of {}, a cache of {} tokens, {} running and {} waiting requests", o.context,
                o.cache_tokens, o.max_running, o.max_waiting);
  if (o.stall_limit < Duration::zero()) return fail(ErrorCode::kInvalidArgument, "a negative limit of stalls");
  return {};
}

// What bytes in the second tier depend on, beside the tokens: the model's files as they are, the arithmetic and the layout.
std::string identity_of(const LoadedModel& loaded, const std::string& layout) {
  std::string identity = loaded.backend->description() + "\n" + layout + "\n";
  for (const auto& file : loaded.model->weights().files) identity += file->identity() + "\n";
  return identity;
}

// Texts of any content, kept apart from what follows.
void add_part(std::string& salt, std::string_view part) {
  salt += std::to_string(part.size());
  salt += ':';
  salt += part;
}

}  // namespace

// In the order in which they are needed; the last goes first.
struct Engine::Parts {
  ManyToOne<std::unique_ptr<Admission>> submitted{kHandOver};
  ManyToOne<std::function<void()>> questions{kQuestions};  // answered between steps
  std::unique_ptr<kvcache::DiskTier> tier;
  std::unique_ptr<kvcache::Cache> cache;
  std::unique_ptr<scheduler::Scheduler> scheduler;
  std::unique_ptr<ModelExecutor> executor;
  std::unique_ptr<grammar::GrammarCache> grammars;  // null without a tokenizer
  std::unique_ptr<StepLoop> loop;
};

Engine::Engine(LoadedModel& loaded, EngineOptions options, const Clock& clock)
    : loaded_(loaded), options_(std::move(options)), clock_(clock), adapters_(*loaded.model), parts_(std::make_unique<Parts>()) {}

Result<std::unique_ptr<Engine>> Engine::start(LoadedModel& loaded, EngineOptions options, const Clock& clock) {
  WEIR_TRY(check_options(loaded, options));
  std::unique_ptr<Engine> engine(new Engine(loaded, std::move(options), clock));
  WEIR_TRY(engine->build());
  engine->publish(false);
  engine->thread_ = std::thread([raw = engine.get()] { raw->run(); });
  return engine;
}

Status Engine::build() {
  const model::Traits& traits = loaded_.model->traits();
  const DType kv_type = options_.kv_type.value_or(loaded_.backend->kv_type());
  WEIR_ASSIGN(CacheLayout layout, cache_layout(traits, budget_of(traits, options_, kv_type, loaded_.backend->phases_differ())));
  cache_tokens_ = layout.tokens;
  context_ = options_.context > 0 ? options_.context : model_context(traits);
  if (traits.max_positions > 0) context_ = std::min<std::int64_t>(context_, traits.max_positions);
  if (traits.has_attention()) context_ = std::min(context_, cache_tokens_);
  layout.cache.event_limit = options_.event_limit;

  Parts& p = *parts_;
  WEIR_ASSIGN(p.executor, ModelExecutor::create(*loaded_.model, layout.memory));
  if (options_.measure) p.executor->use_meter(loaded_.meter.get());
  if (!options_.tier_folder.empty()) {
    WEIR_ASSIGN(p.tier, kvcache::DiskTier::open({.folder = options_.tier_folder,
                                                 .limit_bytes = options_.tier_bytes,
                                                 .identity = identity_of(loaded_, p.executor->memory_layout()),
                                                 .pool_bytes = p.executor->pool_bytes()}));
    layout.cache.tier = p.tier.get();
    p.executor->use_tier(p.tier.get());
  }
  WEIR_TRY(kvcache::check(layout.cache));
  p.cache = std::make_unique<kvcache::Cache>(std::move(layout.cache));
  const scheduler::SchedulerOptions plan{
      .token_budget = std::max(options_.token_budget, options_.max_running + p.cache->options().block_tokens),
      .max_running = options_.max_running,
      .max_waiting = options_.max_waiting,
      .wait = {.target = options_.max_wait}};
  WEIR_TRY(scheduler::Scheduler::check(plan, *p.cache));
  WEIR_ASSIGN(auto policy, make_policy(options_.policy));
  p.scheduler = std::make_unique<scheduler::Scheduler>(plan, *p.cache, std::move(policy), clock_);
  if (loaded_.tokenizer)
    p.grammars = std::make_unique<grammar::GrammarCache>(grammar::Vocabulary::create(loaded_.tokenizer, traits.vocab_size));
  p.loop = std::make_unique<StepLoop>(*p.executor, *p.scheduler, *p.cache, loaded_.tokenizer, clock_);
  WEIR_TRY(build_speculator());
  if (options_.on_step) p.loop->on_step(options_.on_step);
  return {};
}

Status Engine::build_speculator() {
  if (!options_.speculation) {
    if (options_.draft) return fail(ErrorCode::kInvalidArgument, "a draft model, and guessing is off");
    return {};
  }
  std::vector<std::unique_ptr<speculation::DraftSource>> sources;
  sources.push_back(std::make_unique<speculation::LookupSource>());
  if (options_.draft) {
    WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded_.require_tokenizer());
    const DraftModelOptions draft{.max_tokens = cache_tokens_, .max_sequences = options_.max_running, .catch_up = options_.token_budget};
    WEIR_ASSIGN(auto model, DraftModel::make(std::move(*options_.draft), *tokenizer, draft, clock_));
    options_.draft.reset();
    parts_->loop->announce_to([raw = model.get()](SeqId sequence, const sampling::SamplingParams& params, std::uint64_t stream) {
      raw->set_sampling(sequence, params, stream);
    });
    sources.push_back(std::move(model));
  }
  parts_->loop->speculate(std::make_unique<speculation::Speculator>(*options_.speculation, std::move(sources)));
  return {};
}

Engine::~Engine() {
  stopping_ = true;
  notice_->give();
  if (thread_.joinable()) thread_.join();
}

Result<std::int64_t> Engine::token_limit(const CompletionRequest& request) const {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  if (request.prompt_only) {
    if (prompt <= context_) return 0;
    return fail(ErrorCode::kInvalidArgument, "the prompt has {} tokens, this model's context is {}", prompt, context_);
  }
  const std::int64_t room = context_ - prompt;
  if (room < 1)
    return fail(ErrorCode::kInvalidArgument, "the prompt has {} tokens and the context {}, which leaves no room for an answer", prompt,
                context_);
  if (request.max_tokens > room)
    return fail(ErrorCode::kInvalidArgument, "{} tokens of prompt and {} of answer are more than the context of {}: ask for {} at most",
                prompt, request.max_tokens, context_, room);
  return request.max_tokens == 0 ? room : request.max_tokens;
}

std::string Engine::salt_of(const CompletionRequest& request, const NamedAdapter* adapter) const {
  std::string salt;
  add_part(salt, options_.tenants_share_prefixes ? std::string() : request.tenant);
  add_part(salt, request.cache_salt);
  if (adapter != nullptr) add_part(salt, adapter->digest);
  // Where long prompts are rotated otherwise than short ones, their keys are others.
  for (const model::RopeTraits& rope : loaded_.model->traits().ropes) {
    if (!rope.long_frequencies.empty()) salt += static_cast<std::int64_t>(request.prompt.size()) > rope.long_above ? 'l' : 's';
  }
  return salt;
}

Result<Admission> Engine::check(CompletionRequest request) const {
  WEIR_TRY(sampling::validate(request.sampling));
  if (request.prompt.empty()) return fail(ErrorCode::kInvalidArgument, "the prompt is empty: it gives no tokens");
  const std::int32_t vocabulary = loaded_.model->traits().vocab_size;
  for (const TokenId id : request.prompt) {
    if (id < 0 || id >= vocabulary) return fail(ErrorCode::kInvalidArgument, "token {} of the prompt is not in [0, {})", id, vocabulary);
  }
  if (request.answers < 1 || request.answers > kMaxAnswers)
    return fail(ErrorCode::kInvalidArgument, "{} answers: 1 to {} are possible", request.answers, kMaxAnswers);
  if (request.prompt_only && request.answers != 1) return fail(ErrorCode::kInvalidArgument, "{} answers of no tokens", request.answers);
  if (request.max_tokens < 0 || request.min_tokens < 0 || request.prompt_logprobs < -1 || request.prompt_logprobs > 1000)
    return fail(ErrorCode::kInvalidArgument, "max_tokens {}, min_tokens {}, prompt_logprobs {}", request.max_tokens, request.min_tokens,
                request.prompt_logprobs);
  if (!request.sampling.stop.empty() && !loaded_.tokenizer) return fail(ErrorCode::kUnsupported, "{}", loaded_.tokenizer_error);
  Admission admission;
  WEIR_ASSIGN(admission.limit, token_limit(request));
  if (request.min_tokens > admission.limit && !request.prompt_only)
    return fail(ErrorCode::kInvalidArgument, "min_tokens {} is more than the {} that the answer may have", request.min_tokens,
                admission.limit);
  if (request.grammar) {
    if (!parts_->grammars) return fail(ErrorCode::kUnsupported, "{}", loaded_.tokenizer_error);
    if (request.ignore_end) return fail(ErrorCode::kInvalidArgument, "an answer with a grammar ends where the grammar does");
    WEIR_ASSIGN(const auto grammar, parts_->grammars->get(*request.grammar));
    WEIR_ASSIGN(admission.matcher, grammar::Matcher::create(grammar));
  }
  if (request.tpot_target == Duration::zero()) request.tpot_target = options_.stall_limit;
  std::shared_ptr<const NamedAdapter> adapter;
  if (!request.adapter.empty()) {
    WEIR_ASSIGN(adapter, adapters_.find(request.adapter));
    admission.adapter = adapter->adapter;
  }
  admission.salt = salt_of(request, adapter.get());
  admission.request = std::move(request);
  return admission;
}

Result<std::unique_ptr<CompletionStream>> Engine::submit(CompletionRequest request, std::function<void()> on_event) {
  const TimePoint queued = clock_.now();
  if (stopping_ || draining_) return fail(ErrorCode::kCancelled, "the engine takes no more requests: it is stopping");
  WEIR_ASSIGN(Admission checked, check(std::move(request)));
  auto admission = std::make_unique<Admission>(std::move(checked));
  admission->queued = queued;
  auto channel = std::make_shared<CompletionChannel>(notice_, std::move(on_event));
  admission->channel = channel;
  ++handed_over_;
  if (!parts_->submitted.push(admission)) {
    --handed_over_;
    return fail(ErrorCode::kExhausted, "{} requests wait for the engine's thread: it is overloaded", kHandOver);
  }
  notice_->give();
  return make_stream(std::move(channel));
}

void Engine::take_in() {
  for (std::size_t i = 0; i < kHandOver; ++i) {
    auto admission = parts_->submitted.pop();
    if (!admission) break;
    ++taken_in_;
    parts_->loop->admit(std::move(**admission));
  }
  while (auto question = parts_->questions.pop()) (*question)();
}

void Engine::run() {
  StepLoop& loop = *parts_->loop;
  bool worked = true;
  while (!stopping_) {
    guarded([&] {
      worked = true;
      take_in();
      publish(true);
      worked = loop.step();
    });
    settle();
    if (!worked) guarded([&] { idle(); });
  }
  guarded([&] {
    take_in();
    loop.end_all(FinishReason::kCancelled, {ErrorCode::kCancelled, "the engine stops"});
    if (parts_->tier) save_prefixes();
  });
  settle();
}

// Nothing runs: gets ready for what may come, and waits for it.
void Engine::idle() {
  StepExecutor& executor = *parts_->executor;
  if (executor.prepare() || notice_->wait(kBeat)) return;
  while (!notice_->given() && executor.warm_up()) {
  }
}

// A fault of ours must not take the process along: the requests end with it, and the loop goes on.
void Engine::guarded(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& e) {
    log::error("the engine's step failed: {}", e.what());
    parts_->loop->recover({ErrorCode::kInternal, fmt::format("the engine's step failed: {}", e.what())});
  }
}

// Who was taken in counts among the open requests before it leaves those handed over: drain() must see each at any time.
void Engine::settle() {
  publish(false);
  handed_over_ -= std::exchange(taken_in_, 0);
}

// What is cached goes to the second tier, for the next start to find.
void Engine::save_prefixes() {
  constexpr std::size_t kAtOnce = 16;  // what the tier's queue takes without dropping
  const TimePoint end = steady_clock().now() + kSaving;
  std::vector<kvcache::MemoryOp> ops;
  for (bool more = true; more && steady_clock().now() < end;) {
    for (std::size_t i = 0; i < kAtOnce && more; ++i) more = parts_->cache->evict_one();
    parts_->cache->take_ops(ops);
    parts_->executor->apply(ops);
    parts_->tier->flush();
  }
}

void Engine::publish(bool in_step) {
  const std::lock_guard lock(stats_mutex_);
  if (!in_step) parts_->loop->fill(stats_);
  stats_.in_step = in_step;
  stats_.last_beat = clock_.now();
  // No more than the limit: what the follower leaves here must not defeat the bound of the cache's own queue.
  if (cache_events_.size() < options_.event_limit) {
    auto events = parts_->cache->drain_events(options_.event_limit - cache_events_.size());
    cache_events_.insert(cache_events_.end(), std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
  }
}

std::vector<kvcache::CacheEvent> Engine::drain_cache_events() {
  const std::lock_guard lock(stats_mutex_);
  return std::exchange(cache_events_, {});
}

Result<std::vector<kvcache::CacheEvent>> Engine::cache_snapshot(Duration patience) {
  auto promise = std::make_shared<std::promise<std::vector<kvcache::CacheEvent>>>();
  auto answer = promise->get_future();
  std::function<void()> question = [this, promise] {
    auto stored = parts_->cache->snapshot_events();
    parts_->cache->drain_events();
    const std::lock_guard lock(stats_mutex_);
    cache_events_.clear();  // they are in the snapshot
    promise->set_value(std::move(stored));
  };
  if (stopping_ || !parts_->questions.push(question)) return fail(ErrorCode::kExhausted, "the engine answers no more questions");
  notice_->give();
  if (answer.wait_for(patience) != std::future_status::ready)
    return fail(ErrorCode::kDeadline, "the engine's step took longer than {:.1f} s", to_seconds(patience));
  return answer.get();
}

Status Engine::run_between_steps(std::function<void()> work, Duration patience) {
  struct Errand {
    std::promise<void> promise;
    std::function<void()> work;
    std::atomic<bool> taken{false};  // by the thread, or back by who waited in vain
  };
  auto errand = std::make_shared<Errand>();
  errand->work = std::move(work);
  auto done = errand->promise.get_future();
  std::function<void()> question = [errand] {
    if (errand->taken.exchange(true)) return;
    try {
      errand->work();
      errand->promise.set_value();
    } catch (...) {  // the caller's, not a fault of the step
      errand->promise.set_exception(std::current_exception());
    }
  };
  if (stopping_) return fail(ErrorCode::kCancelled, "the engine stops");
  if (!parts_->questions.push(question)) return fail(ErrorCode::kExhausted, "the engine takes no more work between its steps");
  notice_->give();
  if (done.wait_for(std::clamp(patience, Duration::zero(), kLongestErrand)) != std::future_status::ready) {
    const bool began = errand->taken.exchange(true);
    return fail(ErrorCode::kDeadline, "work between the engine's steps {} within {:.1f} s", began ? "did not end" : "could not begin",
                to_seconds(patience));
  }
  try {
    done.get();
  } catch (const std::exception& e) {
    return fail(ErrorCode::kInternal, "work between steps failed: {}", e.what());
  }
  return {};
}

std::uint64_t Engine::cache_bytes() const {
  const std::vector<std::uint64_t> each = parts_->executor->pool_bytes();
  const std::vector<kvcache::PoolStats> pools = stats().cache.pools;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < std::min(each.size(), pools.size()); ++i) bytes += each[i] * static_cast<std::uint64_t>(pools[i].capacity);
  return bytes;
}

ServiceStats Engine::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

std::int64_t Engine::drain(Duration most) {
  draining_ = true;
  const TimePoint end = steady_clock().now() + most;
  const auto open = [this] {
    const std::int64_t coming = handed_over_;  // first: a request moves from these to the others
    return coming + stats().open_requests;
  };
  while (open() > 0 && steady_clock().now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return open();
}

}  // namespace weir::engine
