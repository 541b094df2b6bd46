// SPDX-License-Identifier: Apache-2.0
#include "serving/generation_session.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/log.h"

namespace weir::serving {
namespace {

double milliseconds(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

std::string_view ending_name(api::Ending ending) {
  switch (ending) {
    case api::Ending::kStop: return "stop";
    case api::Ending::kLength: return "length";
    case api::Ending::kToolCalls: return "tool_calls";
    case api::Ending::kCancelled: return "cancelled";
    case api::Ending::kFailed: return "error";
  }
  return "error";
}

api::ApiError timeout_error() {
  return {
      .status = 504, .type = "server_error", .code = "timeout", .message = "the answer was not complete within the request's time limit"};
}

void append(api::ParsedDelta& to, api::ParsedDelta&& more) {
  to.content += more.content;
  to.reasoning += more.reasoning;
  std::ranges::move(more.tool_calls, std::back_inserter(to.tool_calls));
}

void append(api::ChoiceDelta& to, api::ChoiceDelta&& more) {
  to.choice = more.choice;
  append(to.parsed, std::move(more.parsed));
  to.text += more.text;
  to.tokens.insert(to.tokens.end(), more.tokens.begin(), more.tokens.end());
  std::ranges::move(more.logprobs, std::back_inserter(to.logprobs));
  std::ranges::move(more.prompt_logprobs, std::back_inserter(to.prompt_logprobs));
  if (more.end) to.end = std::move(more.end);
}

}  // namespace

void respond_error(const http::Responder& responder, const api::ApiError& error, std::string document, const http::Headers& headers) {
  http::Response response = http::Response::json(error.status, std::move(document));
  for (const auto& [name, value] : headers) response.headers.set(name, value);
  if (error.retry_after_s > 0) response.headers.set("Retry-After", fmt::format("{:.0f}", std::ceil(error.retry_after_s)));
  if (error.status == 401) response.headers.set("WWW-Authenticate", "Bearer");
  responder.respond(std::move(response));
}

GenerationSession::GenerationSession(SessionRequest request, const SessionSettings& settings, EventPump& pump, Observer* observer,
                                     std::atomic<std::int64_t>& count)
    : call_(std::move(request)), settings_(settings), pump_(pump), observer_(observer), count_(count) {
  ++count_;
}

GenerationSession::~GenerationSession() { --count_; }

// On a preparing thread; the pump's takes over with the first event.
void GenerationSession::start() {
  const std::shared_ptr<Client> self = shared_from_this();
  make_choices();
  if (call_.deadline != TimePoint::max()) call_.responder.set_deadline(call_.deadline);
  call_.responder.on_gone([weak = std::weak_ptr(self), this](http::Gone gone) {
    if (const auto alive = weak.lock()) on_gone(gone);
  });
  if (auto status = submit(); !status) {
    // Events of prompts that were submitted may run on the pump already: the end belongs there.
    const std::lock_guard lock(streams_mutex_);
    streams_.clear();
    refusal_ = std::move(status).error();
  }
  started_.store(true, std::memory_order_release);
  pump_.wake(*this);
}

void GenerationSession::make_choices() {
  picked_ = call_.request.options.answers;
  made_ = std::max(call_.request.best_of, picked_);
  choices_.resize(call_.prompts.size() * static_cast<std::size_t>(made_));
  open_ = choices_.size();
  step_seconds_.resize(call_.prompts.size());
  call_.record.finish_reasons.resize(call_.prompts.size() * static_cast<std::size_t>(picked_));
  call_.record.answers = static_cast<std::int32_t>(call_.record.finish_reasons.size());
  for (const auto& prompt : call_.prompts) usage_.prompt_tokens += static_cast<std::int64_t>(prompt.tokens.size());
  if (!call_.request.chat) return;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].parser = api::OutputParser::create(call_.lease->host().output_format(), call_.request, call_.prompts.front().text,
                                                   fmt::format("{}{}", call_.record.id, i));
  }
}

engine::CompletionRequest GenerationSession::completion_request(std::size_t prompt) const {
  engine::CompletionRequest request = call_.request.options;
  request.name = call_.record.id;
  request.prompt = call_.prompts[prompt].tokens;
  request.answers = made_;
  request.adapter = call_.lease->adapter();
  if (buffered() && request.sampling.logprobs < 0) request.sampling.logprobs = 0;
  // With a seed, prompts of one request have different random numbers, yet the first the same as alone.
  if (request.sampling.seed && prompt > 0) *request.sampling.seed += 0x9E3779B97F4A7C15ull * prompt;
  return request;
}

api::ApiResult<void> GenerationSession::submit() {
  for (std::size_t i = 0; i < call_.prompts.size(); ++i) {
    if (gone_.load() != http::Gone::kNo) return {};
    auto stream = call_.lease->host().service()->submit(completion_request(i), [self = shared_from_this(), this] { pump_.wake(*self); });
    if (!stream) {
      api::ApiError error = api::from_error(stream.error());
      if (error.status == 429 || error.status == 503)
        error.retry_after_s = std::max(1.0, to_seconds(call_.lease->host().service()->stats().estimated_wait));
      return std::unexpected(std::move(error));
    }
    const std::lock_guard lock(streams_mutex_);
    streams_.push_back(std::move(*stream));
  }
  return {};
}

// On an io thread (or within start()).
void GenerationSession::on_gone(http::Gone gone) {
  gone_.store(gone);
  {
    const std::lock_guard lock(streams_mutex_);
    for (const auto& stream : streams_) stream->cancel();
  }
  pump_.wake(*this);
}

void GenerationSession::on_pump() {
  if (over_ || !started_.load(std::memory_order_acquire)) return;
  if (answer_gone()) return;
  if (refusal_) return fail(std::move(*refusal_));
  if (!watched_ && call_.request.stream) {
    watched_ = true;
    pump_.watch(shared_from_this());
  }
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (!read(i)) return;
  if (broken_) {
    answer_gone();
    return;
  }
  if (open_ == 0) finish();
}

// A stream that waits long for its first token begins, so that proxies on the way see life.
void GenerationSession::on_tick() {
  if (over_ || stream_begun_) return pump_.unwatch(*this);
  if (steady_clock().now() - call_.record.received >= settings_.quiet_start) begin();
}

// True when nobody waits any longer.
bool GenerationSession::answer_gone() {
  http::Gone gone = gone_.load();
  if (gone == http::Gone::kNo && broken_) gone = call_.responder.gone();
  if (gone == http::Gone::kNo && !broken_) return false;
  if (gone == http::Gone::kDeadline)
    fail(timeout_error());
  else
    end(stream_begun_ ? 200 : 499, std::string(http::gone_name(gone)), true);
  return true;
}

bool GenerationSession::read(std::size_t prompt) {
  while (auto event = streams_[prompt]->next()) {
    if (!handle(prompt, std::move(*event))) return false;
  }
  return true;
}

// False when the session is over.
bool GenerationSession::handle(std::size_t prompt, engine::CompletionEvent&& event) {
  const std::size_t number = prompt * static_cast<std::size_t>(made_) + static_cast<std::size_t>(event.answer);
  Choice& choice = choices_[number];
  if (event.finish && event.finish->error) {
    api::ApiError error = event.finish->error->code == ErrorCode::kDeadline ? timeout_error() : api::from_error(*event.finish->error);
    if (error.status == 429) error.retry_after_s = std::max(1.0, to_seconds(call_.lease->host().service()->stats().estimated_wait));
    fail(std::move(error));
    return false;
  }
  count(prompt, event);
  api::ChoiceDelta delta;
  delta.choice = static_cast<std::int32_t>(number);
  if (choice.parser) {
    delta.parsed = choice.parser->push(event.text);
    if (choice.parser->in_reasoning()) usage_.reasoning_tokens += static_cast<std::int64_t>(event.tokens.size());
  } else {
    delta.parsed.content = event.text;
  }
  delta.text = std::move(event.text);
  delta.tokens = std::move(event.tokens);
  delta.logprobs = std::move(event.logprobs);
  delta.prompt_logprobs = std::move(event.prompt_logprobs);
  if (event.finish) {
    if (choice.parser) append(delta.parsed, choice.parser->finish());
    delta.end = end_of(choice, std::move(*event.finish));
    choice.ended = true;
    --open_;
    if (!buffered()) call_.record.finish_reasons[number] = ending_name(delta.end->ending);
  }
  if (buffered()) {
    for (const auto& token : delta.logprobs) choice.logprob += token.token.logprob;
    append(choice.kept, std::move(delta));
  } else {
    emit(delta);
  }
  return true;
}

api::ChoiceEnd GenerationSession::end_of(Choice& choice, engine::Finish&& finish) {
  api::ChoiceEnd end;
  switch (finish.reason) {
    case engine::FinishReason::kStop:
      end.ending = choice.parser && choice.parser->called_tools() ? api::Ending::kToolCalls : api::Ending::kStop;
      break;
    case engine::FinishReason::kLength: end.ending = api::Ending::kLength; break;
    case engine::FinishReason::kCancelled: end.ending = api::Ending::kCancelled; break;
    case engine::FinishReason::kFailed: end.ending = api::Ending::kFailed; break;
  }
  end.stop_text = finish.stop_text;
  end.finish = std::move(finish);
  return end;
}

void GenerationSession::count(std::size_t prompt, const engine::CompletionEvent& event) {
  usage_.completion_tokens += static_cast<std::int64_t>(event.tokens.size());
  if (!event.finish) return;
  const engine::Finish& finish = *event.finish;
  drafted_ += finish.drafted;
  accepted_ += finish.accepted;
  if (event.answer == 0) usage_.cached_tokens += finish.timeline.cached_tokens;
  step_seconds_[prompt] = std::max(step_seconds_[prompt], finish.cost.total().seconds);
  if (prompt == 0 && event.answer == 0) first_ = finish.timeline;
  if (event.answer == 0 && finish.timeline.finished >= longest_.finished) longest_ = finish.timeline;
}

void GenerationSession::begin() {
  if (stream_begun_ || over_) return;
  if (!begun_) {
    begun_ = true;
    sink_ = [this](std::string_view data, std::string_view event) {
      const http::Push push = call_.writer->framing() == api::Framing::kSse ? call_.responder.send_event(data, event)
                                                                            : call_.responder.write(std::string(data) + "\n");
      if (push != http::Push::kOk) broken_ = true;
    };
  }
  stream_begun_ = call_.request.stream;
  if (stream_begun_) {
    const http::StreamOptions options{.max_queued_bytes = settings_.max_queued_bytes, .comment_after = settings_.comment_after};
    if (call_.writer->framing() == api::Framing::kSse) {
      call_.responder.start_events(call_.headers, options);
    } else {
      http::Headers headers = call_.headers;
      headers.set("Content-Type", "application/x-ndjson");
      headers.set("Cache-Control", "no-cache");
      http::StreamOptions silent = options;
      silent.comment_after = {};
      call_.responder.start_stream(200, std::move(headers), silent);
    }
  }
  const ModelHost& host = call_.lease->host();
  api::AnswerContext context;
  context.id = call_.record.id;
  context.model = call_.request.model.empty() ? call_.lease->model() : call_.request.model;
  context.created = static_cast<std::int64_t>(std::time(nullptr));
  context.system_fingerprint = host.fingerprint();
  context.tokenizer = host.loaded().tokenizer;
  context.prompts = call_.prompts;
  context.choices_per_prompt = picked_;
  call_.writer->begin(context, sink_);
}

void GenerationSession::emit(const api::ChoiceDelta& delta) {
  if (!begun_ || (call_.request.stream && !stream_begun_)) begin();
  if (observer_ != nullptr && observer_->wants_text() && delta.choice == 0) call_.record.answer += delta.text;
  call_.writer->add(delta, sink_);
}

// The likeliest answers of each prompt by their mean log probability, the best first.
void GenerationSession::emit_best() {
  for (std::size_t prompt = 0; prompt < call_.prompts.size(); ++prompt) {
    const auto first = choices_.begin() + static_cast<std::ptrdiff_t>(prompt * static_cast<std::size_t>(made_));
    const auto prompt_logprobs = std::move(first->kept.prompt_logprobs);
    const auto mean = [](const Choice& c) { return c.kept.tokens.empty() ? -1e30 : c.logprob / static_cast<double>(c.kept.tokens.size()); };
    std::stable_sort(first, first + made_, [&](const Choice& a, const Choice& b) { return mean(a) > mean(b); });
    for (std::int32_t i = 0; i < picked_; ++i) {
      api::ChoiceDelta& delta = (first + i)->kept;
      delta.choice = static_cast<std::int32_t>(prompt) * picked_ + i;
      if (i == 0) delta.prompt_logprobs = prompt_logprobs;
      if (call_.request.options.sampling.logprobs < 0) delta.logprobs.clear();
      call_.record.finish_reasons[static_cast<std::size_t>(delta.choice)] = ending_name(delta.end->ending);
      emit(delta);
    }
  }
}

api::Timings GenerationSession::timings() const {
  if (longest_.queued == TimePoint{}) {  // no answer came to its end
    api::Timings t;
    t.total_ms = milliseconds(steady_clock().now() - call_.record.received);
    t.prompt_tokens = usage_.prompt_tokens;
    t.generated_tokens = usage_.completion_tokens;
    return t;
  }
  const Duration before = longest_.queued - call_.record.received;  // in the server, until the engine had it
  const Duration first = longest_.first_token > Duration::zero() ? longest_.first_token : longest_.finished;
  api::Timings t;
  t.queue_ms = milliseconds(before + longest_.started);
  t.prefill_ms = milliseconds(first - longest_.started);
  t.decode_ms = milliseconds(longest_.finished - first);
  t.ttft_ms = milliseconds(before + first);
  t.total_ms = milliseconds(before + longest_.finished);
  t.prompt_tokens = usage_.prompt_tokens;
  t.cached_tokens = usage_.cached_tokens;
  t.generated_tokens = usage_.completion_tokens;
  t.drafted_tokens = drafted_;
  t.accepted_tokens = accepted_;
  double seconds = 0;
  for (const double s : step_seconds_) seconds += s;
  if (seconds > 0 && settings_.watts > 0) {
    t.energy_j = settings_.watts * seconds;
    t.energy_source = fmt::format("estimate: {:.0f} W ({}) for this request's share of the steps, {:.3f} s", settings_.watts,
                                  settings_.watts_source, seconds);
  }
  return t;
}

void GenerationSession::finish() {
  if (buffered()) emit_best();
  if (!begun_) begin();
  const api::Timings times = timings();
  call_.writer->end(usage_, times, sink_);
  const http::Responder responder = call_.responder;
  if (stream_begun_) {
    end(200, {}, false);
    responder.finish();
    return;
  }
  http::Response response = http::Response::json(200, call_.writer->document());
  for (const auto& [name, value] : call_.headers) response.headers.set(name, value);
  end(200, {}, false);
  responder.respond(std::move(response));
}

void GenerationSession::fail(api::ApiError error) {
  const http::Responder responder = call_.responder;
  if (error.status >= 500) log::warn("{}: {} ({})", call_.record.id, error.message, error.code);
  if (stream_begun_) {
    call_.writer->error_event(error, sink_);
    end(200, error.code, false);
    responder.finish();
  } else {
    std::string document = call_.writer->error_document(error);
    end(error.status, error.code, false);
    respond_error(responder, error, std::move(document), call_.headers);
  }
}

// What it held is free from here on; dropping the streams cancels what still runs.
void GenerationSession::end(int status, const std::string& error_code, bool cancelled) {
  over_ = true;
  pump_.unwatch(*this);
  {
    const std::lock_guard lock(streams_mutex_);
    streams_.clear();
  }
  if (call_.ticket) call_.ticket->settle(usage_.prompt_tokens, usage_.completion_tokens);
  call_.ticket.reset();
  RequestRecord& record = call_.record;
  record.status = status;
  record.error_code = error_code;
  record.cancelled = cancelled;
  record.usage = usage_;
  record.timings = timings();
  for (std::string& reason : record.finish_reasons)
    if (reason.empty()) reason = cancelled ? "cancelled" : "error";
  const Duration before = first_.queued - record.received;
  for (const Duration at : first_.tokens) record.token_times.push_back(before + at);
  if (observer_ != nullptr) {
    if (observer_->wants_text())
      for (const auto& prompt : call_.prompts) record.prompt += prompt.text;
    observer_->on_request(record);
  }
  call_.lease.reset();
}

}  // namespace weir::serving
