// SPDX-License-Identifier: Apache-2.0
// The connections of a worker: what is sent, what is read, and the moments that are written down.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "loadgen/worker.h"

namespace weir::loadgen {
namespace {

constexpr std::size_t kMaxBody = 64u << 20, kMaxLags = 1u << 20, kMaxErrorText = 500;

bool is_local(int error) { return error == EMFILE || error == ENFILE || error == EADDRNOTAVAIL || error == ENOBUFS || error == ENOMEM; }

// FNV-1a; never 0, which means that there is none.
std::uint64_t text_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash == 0 ? 1 : hash;
}

}  // namespace

void Worker::start(std::size_t slot) {
  RequestRecord& record = records_[sessions_[slot].record];
  ++active_;
  Connection* connection = nullptr;
  if (!idle_.empty()) {
    connection = idle_.back();
    idle_.pop_back();
    connection->reused = true;
    record.started = since_start();
    connection->session = slot;
    return write(*connection);
  }
  record.started = since_start();
  connection = connect();
  if (!connection) {
    const int error = errno;
    record.outcome = is_local(error) ? Outcome::kLocal : Outcome::kConnect;
    record.done = since_start();
    if (first_error_.empty()) first_error_ = std::strerror(error);
    progress_.failed.fetch_add(1, std::memory_order_relaxed);
    --active_;
    return end_turn(slot, false, {});
  }
  connection->session = slot;
}

Worker::Connection* Worker::connect() {
  auto owned = std::make_unique<Connection>(target_);
  Connection* connection = owned.get();
  if (!connection->wire.open()) return nullptr;
  connection->tag = next_tag_++;
  if (!loop_->watch(connection->wire.fd(), EPOLLOUT, connection->tag)) {
    errno = ENOMEM;
    return nullptr;
  }
  connection->writing = true;
  ++opened_;
  connections_.emplace(connection->tag, std::move(owned));
  return connection;
}

void Worker::on_socket(std::uint64_t tag, std::uint32_t events, TimePoint ready) {
  const auto found = connections_.find(tag);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  if (!connection.open) return on_connecting(connection);
  if (events & EPOLLOUT) {
    if (!connection.wire.flush()) return broken(connection, Outcome::kCut, "writing failed");
    if (connection.wire.all_sent()) {
      if (connection.session != kNone) records_[sessions_[connection.session].record].sent = since_start();
      connection.writing = !loop_->change(connection.wire.fd(), EPOLLIN, tag).has_value();
    }
  }
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read(connection, ready);
}

void Worker::on_connecting(Connection& connection) {
  const Wire::Ready ready = connection.wire.progress();
  if (ready == Wire::Ready::kFailed) return broken(connection, Outcome::kConnect, connection.wire.failure());
  if (ready == Wire::Ready::kNotYet) {
    connection.writing = connection.wire.wants_write();
    if (!loop_->change(connection.wire.fd(), connection.writing ? EPOLLOUT : EPOLLIN, connection.tag))
      broken(connection, Outcome::kLocal, "epoll refused a socket");
    return;
  }
  connection.open = true;
  connection.reused = false;
  records_[sessions_[connection.session].record].connected = since_start();
  write(connection);
}

void Worker::write(Connection& connection) {
  Session& session = sessions_[connection.session];
  connection.reader.reset();
  connection.body.clear();
  connection.answer.clear();
  connection.error.clear();
  connection.events = http::SseParser();
  connection.failed = connection.finished = false;
  if (!connection.wire.send(session.bytes)) return broken(connection, Outcome::kCut, "writing failed");
  RequestRecord& record = records_[session.record];
  const bool all = connection.wire.all_sent();
  if (all) record.sent = since_start();
  progress_.sent.fetch_add(1, std::memory_order_relaxed);
  if (all == connection.writing)
    connection.writing =
        loop_->change(connection.wire.fd(), all ? EPOLLIN : EPOLLIN | EPOLLOUT, connection.tag) ? !all : connection.writing;
}

void Worker::note_lag(TimePoint ready, TimePoint now) {
  const auto lag = static_cast<float>(to_seconds(now - ready));
  if (read_lags_.size() < kMaxLags)
    read_lags_.push_back(lag);
  else
    read_lags_[reads_ % kMaxLags] = lag;
  ++reads_;
}

void Worker::read(Connection& connection, TimePoint ready) {
  static thread_local char buffer[64u << 10];
  while (true) {
    std::string_view bytes;
    const Wire::Read got = connection.wire.read(buffer, sizeof buffer, bytes);
    if (got == Wire::Read::kNothing) return;
    const TimePoint now = steady_clock().now();
    const Duration at = now - start_;
    note_lag(ready, now);
    if (connection.session == kNone) return release(connection, false);  // closed, or talking without being asked
    if (got == Wire::Read::kBytes) {
      const std::size_t taken = connection.reader.feed(bytes, [&](std::string_view body) { take_body(connection, body, at); });
      if (connection.reader.failed()) return broken(connection, Outcome::kMalformed, "the answer is not HTTP/1.1 as it should be");
      if (connection.body.size() > kMaxBody) return broken(connection, Outcome::kMalformed, "the answer is too long");
      if (connection.reader.done())
        return taken == bytes.size() ? complete(connection, at) : broken(connection, Outcome::kMalformed, "bytes behind the answer");
      if (!target_.tls) return;
      continue;
    }
    const bool unanswered = !connection.reader.begun();
    connection.reader.end_of_input();
    if (connection.reader.done()) return complete(connection, at);
    return broken(connection, Outcome::kCut,
                  unanswered ? "the connection ended before an answer" : "the connection ended within the answer");
  }
}

void Worker::take_body(Connection& connection, std::string_view bytes, Duration at) {
  if (!connection.reader.event_stream() || connection.reader.status() / 100 != 2) {
    connection.body += bytes;
    return;
  }
  const bool want_text = wants_text(sessions_[connection.session]);
  const bool fits = connection.events.feed(bytes, [&](http::SseEvent& event) {
    AnswerPiece piece = parse_event(event.data, want_text);
    take_piece(connection, piece, at);
  });
  if (!fits) connection.failed = true, connection.error = "an event is too long";
}

void Worker::take_piece(Connection& connection, AnswerPiece& piece, Duration at) {
  RequestRecord& record = records_[sessions_[connection.session].record];
  connection.finished |= piece.done;
  if (!piece.valid || piece.error) {
    connection.failed = true;
    if (connection.error.empty()) connection.error = piece.error ? piece.text : "an event is not JSON";
  }
  connection.answer += piece.error ? std::string() : piece.text;
  if (piece.content) {
    if (record.first_token == kNever) {
      record.first_token = at;
      progress_.ttft.add(at - record.scheduled);
    } else {
      record.gaps.push_back(at - record.last_token);
      progress_.itl.add(record.gaps.back());
    }
    record.last_token = at;
    ++record.events;
    progress_.tokens.fetch_add(1, std::memory_order_relaxed);
  }
  if (piece.prompt_tokens >= 0) record.prompt_tokens = piece.prompt_tokens;
  if (piece.completion_tokens >= 0) record.output_tokens = piece.completion_tokens;
  if (piece.cached_tokens >= 0) record.cached_tokens = piece.cached_tokens;
  if (piece.queue_s >= 0) record.queue_s = piece.queue_s;
  if (piece.prefill_s >= 0) record.prefill_s = piece.prefill_s;
  if (piece.decode_s >= 0) record.decode_s = piece.decode_s;
}

void Worker::complete(Connection& connection, Duration at) {
  RequestRecord& record = records_[sessions_[connection.session].record];
  record.status = static_cast<std::int16_t>(connection.reader.status());
  record.done = at;
  const bool stream = connection.reader.event_stream();
  if (record.status / 100 != 2) {
    const AnswerPiece piece = parse_body(connection.body, true);
    return finish(connection, Outcome::kHttpError,
                  fmt::format("status {}: {}", record.status, piece.error ? piece.text : connection.body.substr(0, kMaxErrorText)));
  }
  if (!stream) {
    AnswerPiece piece = parse_body(connection.body, wants_text(sessions_[connection.session]));
    if (!piece.valid) return finish(connection, Outcome::kMalformed, "the answer is not a JSON object");
    // No token has a moment of its own: TTFT and gaps stay unknown, and tokens are what the server counts.
    piece.content = false;
    take_piece(connection, piece, at);
  }
  if (connection.failed) return finish(connection, Outcome::kStreamError, connection.error);
  if (stream && record.events == 0) return finish(connection, Outcome::kMalformed, "a stream without content");
  if (stream && !connection.finished) return finish(connection, Outcome::kCut, "the stream ended without [DONE]");
  finish(connection, Outcome::kOk, {});
}

void Worker::finish(Connection& connection, Outcome outcome, std::string error) {
  const std::size_t slot = connection.session;
  RequestRecord& record = records_[sessions_[slot].record];
  record.outcome = outcome;
  if (record.done == kNever) record.done = since_start();
  if (outcome == Outcome::kOk && plan_.shape.hash_answers) record.answer_hash = text_hash(connection.answer);
  if (outcome != Outcome::kOk && first_error_.empty()) first_error_ = error.substr(0, kMaxErrorText);
  (outcome == Outcome::kOk ? progress_.done : progress_.failed).fetch_add(1, std::memory_order_relaxed);
  const Duration done = record.done;
  std::string answer = std::move(connection.answer);
  connection.session = kNone;
  --active_;
  release(connection, connection.reader.done() && connection.reader.keep_alive() && !connection.writing);
  next_waiting(done);
  end_turn(slot, outcome == Outcome::kOk, std::move(answer));
}

// A kept connection that the server closed just then says nothing about the request: once more, on a new connection.
void Worker::broken(Connection& connection, Outcome outcome, const std::string& reason) {
  const std::size_t slot = connection.session;
  if (slot != kNone && outcome == Outcome::kCut && connection.reused && !connection.reader.begun()) {
    ++resent_;
    connection.session = kNone;
    release(connection, false);
    --active_;
    return start(slot);
  }
  connection.reader.reset();
  if (slot == kNone) return release(connection, false);
  finish(connection, outcome, reason);
}

void Worker::release(Connection& connection, bool keep) {
  if (keep) {
    idle_.push_back(&connection);
    return;
  }
  std::erase(idle_, &connection);
  loop_->remove(connection.wire.fd());
  connection.wire.close();
  const auto found = connections_.find(connection.tag);
  graveyard_.push_back(std::move(found->second));
  connections_.erase(found);
}

void Worker::next_waiting(Duration now) {
  if (waiting_.empty() || active_ >= cap_) return;
  const std::size_t slot = waiting_.front();
  waiting_.pop_front();
  progress_.waiting.fetch_sub(1, std::memory_order_relaxed);
  records_[sessions_[slot].record].eligible = now;
  start(slot);
}

}  // namespace weir::loadgen
