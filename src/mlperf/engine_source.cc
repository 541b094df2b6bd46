// SPDX-License-Identifier: Apache-2.0
#include "mlperf/engine_source.h"

#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "engine/chat.h"

namespace weir::mlperf {
namespace {

constexpr std::int64_t kBlock = 32;
constexpr std::size_t kAhead = 2;  // requests with the engine for each that it runs at once: the next is there when one ends

Result<std::vector<TokenId>> chat_ids(const engine::LoadedModel& loaded, const Sample& sample) {
  WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded.require_tokenizer());
  text::Messages messages;
  if (sample.messages.empty()) messages.user(engine::valid_text(sample.prompt));
  for (const json::Value& value : sample.messages) {
    WEIR_ASSIGN(const json::Object* message, json::as_object(value, "a message"));
    WEIR_ASSIGN(const std::string role, json::get_string(*message, "role"));
    WEIR_ASSIGN(const std::string content, json::get_string(*message, "content"));
    messages.add(role, engine::valid_text(content));
  }
  WEIR_ASSIGN(const std::string rendered, engine::render_chat(loaded, messages));
  return engine::encode_rendered(*tokenizer, rendered);
}

Result<std::vector<TokenId>> ids_of(const engine::LoadedModel& loaded, const Sample& sample, bool chat) {
  if (!sample.tokens.empty()) return sample.tokens;
  if (chat || !sample.messages.empty()) return chat_ids(loaded, sample);
  WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded.require_tokenizer());
  return tokenizer->encode(engine::valid_text(sample.prompt), {.add_special = true, .parse_special = false});
}

// In a process of real-time priority (chrt) the engine's threads would leave this one no processor until they rest, and first tokens would
// be told late.
void go_first() {
  int policy = 0;
  sched_param parameters{};
  if (::pthread_getschedparam(::pthread_self(), &policy, &parameters) != 0 || (policy != SCHED_FIFO && policy != SCHED_RR)) return;
  ++parameters.sched_priority;
  (void)::pthread_setschedparam(::pthread_self(), policy, &parameters);  // else it stays as it is
}

std::string_view bytes_of(std::span<const std::int32_t> ids) { return {reinterpret_cast<const char*>(ids.data()), ids.size_bytes()}; }

}  // namespace

EngineSource::EngineSource(engine::LoadedModel& loaded, const EngineSourceOptions& options)
    : loaded_(loaded), options_(options), name_(fmt::format("weir {}", loaded.path.filename().string())) {}

Result<std::unique_ptr<EngineSource>> EngineSource::start(engine::LoadedModel& loaded, const EngineSourceOptions& options,
                                                          const Dataset& dataset) {
  std::unique_ptr<EngineSource> source(new EngineSource(loaded, options));
  WEIR_TRY(source->encode(dataset));
  engine::EngineOptions o;
  o.context = source->longest_ + options.max_tokens;
  o.cache_tokens = options.max_running * ((o.context / kBlock + 2) * kBlock);
  o.kv_type = options.kv_type;
  o.max_running = options.max_running;
  o.prefix_cache = false;
  o.speculation.reset();
  o.measure = false;
  WEIR_ASSIGN(source->engine_, engine::Engine::start(loaded, std::move(o)));
  source->thread_ = std::thread([s = source.get()] { s->run(); });
  return source;
}

EngineSource::~EngineSource() {
  {
    const std::lock_guard lock(inbox_->mutex);
    inbox_->stop = true;
  }
  inbox_->notice.give();
  if (thread_.joinable()) thread_.join();
}

Status EngineSource::encode(const Dataset& dataset) {
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    auto ids = ids_of(loaded_, dataset.samples[i], options_.chat);
    if (!ids) return std::unexpected(std::move(ids.error()).with_context(fmt::format("{}, sample {}", dataset.name, i + 1)));
    longest_ = std::max(longest_, static_cast<std::int64_t>(ids->size()));
    prompts_.push_back(std::move(*ids));
  }
  return {};
}

void EngineSource::ask(std::span<const Asked> asked, AnswerSink& sink) {
  {
    const std::lock_guard lock(inbox_->mutex);
    for (const Asked& a : asked) inbox_->asked.push_back({a, &sink});
  }
  inbox_->notice.give();
}

void EngineSource::run() {
  go_first();
  std::vector<Waiting> asked;
  std::vector<std::uint64_t> ready;
  while (true) {
    inbox_->notice.wait(std::chrono::hours(1));
    {
      const std::lock_guard lock(inbox_->mutex);
      if (inbox_->stop) break;
      asked.swap(inbox_->asked);
      ready.swap(inbox_->ready);
    }
    waiting_.insert(waiting_.end(), asked.begin(), asked.end());
    for (const std::uint64_t ticket : ready) take_events(ticket);
    submit_waiting();
    asked.clear();
    ready.clear();
  }
  open_.clear();  // cancels what is left
}

void EngineSource::submit_waiting() {
  const std::size_t most = kAhead * static_cast<std::size_t>(options_.max_running);
  while (!waiting_.empty() && open_.size() < most) {
    begin(waiting_.front());
    waiting_.pop_front();
  }
}

void EngineSource::begin(const Waiting& who) {
  const std::uint64_t ticket = next_ticket_++;
  engine::CompletionRequest request;
  request.prompt = prompts_.at(who.asked.sample);
  request.max_tokens = options_.max_tokens;
  request.min_tokens = options_.min_tokens;
  request.speculate = false;
  auto stream = engine_->submit(std::move(request), [inbox = inbox_, ticket] {
    {
      const std::lock_guard lock(inbox->mutex);
      inbox->ready.push_back(ticket);
    }
    inbox->notice.give();
  });
  if (!stream) return who.sink->failed(who.asked.id, false, stream.error().message);
  open_.emplace(ticket, Open{.who = who, .stream = std::move(*stream), .tokens = {}, .first = false});
}

// A callback may come before its stream is here, but not before this thread looks at it: both are this thread's.
void EngineSource::take_events(std::uint64_t ticket) {
  const auto found = open_.find(ticket);
  if (found == open_.end()) return;
  while (auto event = found->second.stream->next()) {
    take(found->second, *event);
    if (!event->last) continue;
    open_.erase(found);
    return;
  }
}

void EngineSource::take(Open& open, engine::CompletionEvent& event) {
  const std::uint64_t id = open.who.asked.id;
  open.tokens.insert(open.tokens.end(), event.tokens.begin(), event.tokens.end());
  if (!open.first && !open.tokens.empty()) {
    open.first = true;
    open.who.sink->first_token(id, bytes_of(std::span(open.tokens).first(1)));
  }
  if (!event.last) return;
  const auto& finish = event.finish;
  const bool whole = finish && (finish->reason == engine::FinishReason::kStop || finish->reason == engine::FinishReason::kLength);
  if (!whole || open.tokens.empty())
    return open.who.sink->failed(id, open.first, finish && finish->error ? finish->error->message : "the answer did not end by itself");
  open.who.sink->finished(id, bytes_of(open.tokens), static_cast<std::int64_t>(open.tokens.size()));
}

std::string EngineSource::decode(std::string_view data) const {
  std::vector<TokenId> ids;
  for (std::size_t at = 0; at + sizeof(std::int32_t) <= data.size(); at += sizeof(std::int32_t)) {
    std::int32_t id = 0;
    std::memcpy(&id, data.data() + at, sizeof id);
    ids.push_back(static_cast<TokenId>(id));
  }
  return loaded_.tokenizer ? loaded_.tokenizer->decode(ids) : std::string();
}

}  // namespace weir::mlperf
