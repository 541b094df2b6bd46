// SPDX-License-Identifier: Apache-2.0
#include "mlperf/http_source.h"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "loadgen/answer_parser.h"
#include "loadgen/plan.h"

namespace weir::mlperf {
namespace {

constexpr std::uint64_t kTick = 1;
constexpr Duration kTickTime = std::chrono::milliseconds(500), kSpin = std::chrono::microseconds(50);
constexpr std::size_t kMaxBody = 64u << 20, kMaxErrorText = 500;

// The request's JSON without the closing brace.
Result<std::string> body_of(const Sample& sample, const HttpSourceOptions& options) {
  json::Object body{{"model", options.model}};
  if (options.target.chat) {
    if (!sample.tokens.empty()) return fail(ErrorCode::kUnsupported, "a prompt of ids needs --completions");
    body["messages"] = sample.messages.empty() ? json::Array{json::Object{{"role", "user"}, {"content", sample.prompt}}} : sample.messages;
  } else {
    if (!sample.messages.empty()) return fail(ErrorCode::kUnsupported, "messages need the chat endpoint: not --completions");
    if (sample.tokens.empty()) {
      body["prompt"] = sample.prompt;
    } else {
      body["prompt"] = json::Array(sample.tokens.begin(), sample.tokens.end());
    }
  }
  body["max_tokens"] = options.max_tokens;
  if (options.min_tokens > 0) body["min_tokens"] = options.min_tokens;
  body["temperature"] = 0;
  body["stream"] = true;
  body["stream_options"] = json::Object{{"include_usage", true}};
  std::string text = boost::json::serialize(body);
  text.pop_back();
  return text;
}

}  // namespace

HttpSource::HttpSource(const HttpSourceOptions& options, loadgen::Target target)
    : options_(options), target_(std::move(target)), name_(fmt::format("{} at {}", options.model, target_.url)) {}

Result<std::unique_ptr<HttpSource>> HttpSource::start(const HttpSourceOptions& options, const Dataset& dataset) {
  WEIR_ASSIGN(loadgen::Target target, loadgen::Target::resolve(options.target));
  std::unique_ptr<HttpSource> source(new HttpSource(options, std::move(target)));
  WEIR_TRY(source->make_bodies(dataset));
  WEIR_ASSIGN(source->loop_, loadgen::EventLoop::make(kSpin));
  source->loop_->at(steady_clock().now() + kTickTime, kTick);
  source->thread_ = std::thread([s = source.get()] { s->loop_->run(*s); });
  return source;
}

HttpSource::~HttpSource() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  if (!thread_.joinable()) return;
  loop_->wake();
  thread_.join();
}

Status HttpSource::make_bodies(const Dataset& dataset) {
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    auto body = body_of(dataset.samples[i], options_);
    if (!body) return std::unexpected(std::move(body.error()).with_context(fmt::format("{}, sample {}", dataset.name, i + 1)));
    bodies_.push_back(std::move(*body));
  }
  return {};
}

void HttpSource::ask(std::span<const Asked> asked, AnswerSink& sink) {
  {
    const std::lock_guard lock(mutex_);
    for (const Asked& a : asked) inbox_.push_back({a, &sink});
  }
  loop_->wake();
}

HttpSource::Notes HttpSource::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

void HttpSource::on_due(std::uint64_t, TimePoint when) {
  graveyard_.clear();
  std::vector<Connection*> late;
  for (auto& [tag, connection] : connections_)
    if (connection->busy && when - connection->started > options_.timeout) late.push_back(connection.get());
  for (Connection* connection : late) {
    connection->reused = false;  // no second try
    broken(*connection, "no answer within the time limit");
  }
  start_waiting();
  loop_->at(when + kTickTime, kTick);
}

void HttpSource::on_socket(std::uint64_t tag, std::uint32_t events, TimePoint) {
  if (tag == loadgen::EventLoop::kWakeTag) return take_in();
  const auto found = connections_.find(tag);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  if (!connection.open) {
    const auto ready = connection.wire.progress();
    if (ready == loadgen::Wire::Ready::kFailed) return broken(connection, connection.wire.failure());
    if (ready == loadgen::Wire::Ready::kNotYet) return watch(connection);
    connection.open = true;
    return write(connection);
  }
  if (events & EPOLLOUT) {
    if (!connection.wire.flush()) return broken(connection, "writing failed");
    watch(connection);
  }
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read(connection);
}

void HttpSource::take_in() {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return loop_->stop();
    waiting_.insert(waiting_.end(), inbox_.begin(), inbox_.end());
    inbox_.clear();
  }
  start_waiting();
}

void HttpSource::start_waiting() {
  while (!waiting_.empty() && busy_ < options_.max_open) {
    const Waiting who = waiting_.front();
    waiting_.pop_front();
    begin(who);
  }
}

void HttpSource::begin(const Waiting& who) {
  Connection* connection = nullptr;
  if (!idle_.empty()) {
    connection = idle_.back();
    idle_.pop_back();
    connection->reused = true;
  } else {
    connection = connect();
    if (!connection) return who.sink->failed(who.asked.id, false, fmt::format("connecting: {}", std::strerror(errno)));
  }
  ++busy_;
  connection->busy = true;
  connection->who = who;
  connection->started = steady_clock().now();
  std::string salt;
  if (options_.cache_salt) salt = fmt::format(",\"cache_salt\":\"mlperf-{:x}-{}\"", options_.seed, asked_count_);
  ++asked_count_;
  const std::string& body = bodies_.at(who.asked.sample);
  connection->request = fmt::format("{}{}\r\n\r\n{}{}}}", target_.head, body.size() + salt.size() + 1, body, salt);
  if (connection->open) write(*connection);
}

HttpSource::Connection* HttpSource::connect() {
  auto owned = std::make_unique<Connection>(target_);
  Connection* connection = owned.get();
  if (!connection->wire.open()) return nullptr;
  connection->tag = next_tag_++;
  if (!loop_->watch(connection->wire.fd(), EPOLLOUT, connection->tag)) {
    errno = ENOMEM;
    return nullptr;
  }
  connections_.emplace(connection->tag, std::move(owned));
  return connection;
}

void HttpSource::watch(Connection& connection) {
  const std::uint32_t wanted = !connection.open             ? (connection.wire.wants_write() ? EPOLLOUT : EPOLLIN)
                               : connection.wire.all_sent() ? EPOLLIN
                                                            : EPOLLIN | EPOLLOUT;
  if (!loop_->change(connection.wire.fd(), wanted, connection.tag)) broken(connection, "epoll refused a socket");
}

void HttpSource::write(Connection& connection) {
  connection.reader.reset();
  connection.events = http::SseParser();
  connection.answer.clear();
  connection.body.clear();
  connection.error.clear();
  connection.first = connection.finished = false;
  connection.tokens = connection.cached = -1;
  connection.pieces = 0;
  if (!connection.wire.send(connection.request)) return broken(connection, "writing failed");
  watch(connection);
}

void HttpSource::read(Connection& connection) {
  static thread_local char buffer[64u << 10];
  while (true) {
    std::string_view bytes;
    const loadgen::Wire::Read got = connection.wire.read(buffer, sizeof buffer, bytes);
    if (got == loadgen::Wire::Read::kNothing) return;
    if (!connection.busy) return drop(connection);  // closed, or talking without being asked
    if (got != loadgen::Wire::Read::kBytes) {
      connection.reader.end_of_input();
      if (connection.reader.done()) return complete(connection);
      return broken(connection, "the connection ended before the answer did");
    }
    const std::size_t taken = connection.reader.feed(bytes, [&](std::string_view body) { take_body(connection, body); });
    connection.reused = false;  // it has answered: no second try
    if (connection.reader.failed() || connection.body.size() > kMaxBody || connection.answer.size() > kMaxBody)
      return broken(connection, "the answer is not HTTP/1.1 as it should be, or too long");
    if (connection.reader.done()) return taken == bytes.size() ? complete(connection) : broken(connection, "bytes behind the answer");
    if (!target_.tls) return;
  }
}

void HttpSource::take_body(Connection& connection, std::string_view bytes) {
  if (!connection.reader.event_stream() || connection.reader.status() / 100 != 2) {
    connection.body += bytes;
    return;
  }
  if (!connection.events.feed(bytes, [&](http::SseEvent& event) { take_event(connection, event.data); }) && connection.error.empty())
    connection.error = "an event is too long";
}

void HttpSource::take_event(Connection& connection, std::string_view data) {
  const loadgen::AnswerPiece piece = loadgen::parse_event(data, true);
  connection.finished |= piece.done;
  if ((!piece.valid || piece.error) && connection.error.empty()) connection.error = piece.error ? piece.text : "an event is not JSON";
  if (piece.completion_tokens >= 0) connection.tokens = piece.completion_tokens;
  if (piece.cached_tokens >= 0) connection.cached = piece.cached_tokens;
  if (!piece.content || piece.error) return;
  ++connection.pieces;
  connection.answer += piece.text;
  if (connection.first) return;
  connection.first = true;
  connection.who.sink->first_token(connection.who.asked.id, piece.text);
}

void HttpSource::complete(Connection& connection) {
  const int status = connection.reader.status();
  if (status / 100 != 2) {
    const loadgen::AnswerPiece piece = loadgen::parse_body(connection.body, true);
    return end(connection, fmt::format("status {}: {}", status, piece.error ? piece.text : connection.body.substr(0, kMaxErrorText)));
  }
  if (!connection.reader.event_stream()) return end(connection, "the server does not stream, so first tokens cannot be told");
  if (!connection.error.empty()) return end(connection, connection.error.substr(0, kMaxErrorText));
  end(connection, connection.finished ? "" : "the stream ended without [DONE]");
}

// A kept connection that the server closed just then says nothing about the request: once more, on a new one.
void HttpSource::broken(Connection& connection, const std::string& reason) {
  if (connection.busy && connection.reused) {
    const Waiting who = connection.who;
    connection.busy = false;
    --busy_;
    drop(connection);
    return begin(who);
  }
  connection.reader.reset();
  if (!connection.busy) return drop(connection);
  end(connection, reason);
}

void HttpSource::end(Connection& connection, const std::string& failure) {
  const Waiting who = connection.who;
  const std::string answer = std::move(connection.answer);
  const bool had_first = connection.first;
  const std::int64_t tokens = connection.tokens >= 0 ? connection.tokens : connection.pieces;
  if (failure.empty()) {
    const std::lock_guard lock(mutex_);
    notes_.cached_tokens += std::max<std::int64_t>(connection.cached, 0);
    notes_.uncounted += connection.tokens < 0 ? 1 : 0;
  }
  connection.busy = false;
  --busy_;
  if (connection.reader.done() && connection.reader.keep_alive() && connection.wire.all_sent()) {
    idle_.push_back(&connection);
  } else {
    drop(connection);
  }
  if (!failure.empty()) {
    who.sink->failed(who.asked.id, had_first, failure);
  } else {
    if (!had_first) who.sink->first_token(who.asked.id, {});  // an answer without text
    who.sink->finished(who.asked.id, answer, tokens);
  }
  start_waiting();
}

void HttpSource::drop(Connection& connection) {
  std::erase(idle_, &connection);
  loop_->remove(connection.wire.fd());
  connection.wire.close();
  const auto found = connections_.find(connection.tag);
  graveyard_.push_back(std::move(found->second));
  connections_.erase(found);
}

}  // namespace weir::mlperf
