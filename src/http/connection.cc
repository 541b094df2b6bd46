// SPDX-License-Identifier: Apache-2.0
// Life and time of a connection: its start, what each state may take, its end.
#include "http/connection.h"

#include <algorithm>

#include "base/log.h"
#include "http/sse.h"

namespace weir::http {
namespace {

constexpr Duration kLingerTime = std::chrono::seconds(2);
constexpr Duration kWatchTime = std::chrono::milliseconds(25);  // how often to look for a client that is gone behind bytes we do not read
constexpr std::string_view kComment = "keep-alive";

Duration time_for(std::uint64_t bytes, std::size_t per_second) {
  return std::chrono::milliseconds(bytes * 1000 / std::max<std::size_t>(per_second, 1));
}

}  // namespace

Connection::Connection(Loop& loop, ServerCore& core, ConnectionSet& set, std::string peer, std::atomic<std::uint64_t>& count)
    : loop_(loop), core_(core), set_(set), peer_(std::move(peer)), count_(count), stream_(loop, *this) {}

Connection::~Connection() = default;

void Connection::start(int fd, bool tls) {
  state_since_ = steady_clock().now();
  if (!stream_.adopt(fd)) return close();
  if (tls) {
    state_ = State::kHandshake;
    stream_.accept_tls(core_.tls());
  } else {
    begin_request();
    read_more();
  }
  arm();
}

void Connection::start_refused(int fd) {
  if (!stream_.adopt(fd)) return close();
  begin_request();
  refuse(503, "the server has too many connections");
  arm();
}

void Connection::on_ready() {
  certificate_ = stream_.peer_certificate();
  begin_request();
  read_more();
  arm();
}

void Connection::on_broken(const std::string& reason) {
  log::debug("http: {}: {}", peer_, reason);
  if (state_ == State::kAnswering) core_.clients_gone.fetch_add(1, std::memory_order_relaxed);
  close(Gone::kClientClosed);
}

TimePoint Connection::next_deadline() {
  const ServerLimits& limits = core_.options.limits;
  switch (state_) {
    case State::kHandshake:
    case State::kHead: return state_since_ + limits.header_timeout;
    case State::kIdle: return state_since_ + limits.idle_timeout;
    case State::kBody: return state_since_ + limits.body_timeout + time_for(body_seen_, limits.min_bytes_per_second);
    case State::kLingering: return state_since_ + kLingerTime;
    case State::kClosed: return TimePoint::max();
    case State::kAnswering: break;
  }
  TimePoint next = std::min(write_deadline_, grace_ends_);
  if (!exchange_) return next;
  if (grace_ends_ == TimePoint::max()) next = std::min(next, exchange_->deadline());
  if (const Duration silence = exchange_->comment_after(); silence > Duration::zero() && !writing_)
    next = std::min(next, last_write_ + silence);
  if (!stream_.reading() && !ended_) next = std::min(next, steady_clock().now() + kWatchTime);
  return next;
}

void Connection::on_timer() {
  const TimePoint now = steady_clock().now();
  if (state_ == State::kAnswering) {
    check_request_deadline(now);
    if (state_ == State::kAnswering) check_silence(now);
  } else if (now >= next_deadline()) {
    const bool late = state_ == State::kHead || state_ == State::kBody;
    if (late || state_ == State::kHandshake) core_.timeouts.fetch_add(1, std::memory_order_relaxed);
    if (late) {
      refuse(408, state_ == State::kHead ? "the request's headers took too long" : "the request's body took too long");
    } else {
      close();
    }
  }
  if (state_ != State::kClosed) arm();
}

void Connection::check_request_deadline(TimePoint now) {
  if (now >= write_deadline_) {
    core_.timeouts.fetch_add(1, std::memory_order_relaxed);
    return close(Gone::kTooSlow);
  }
  if (!exchange_) return;
  if (now >= grace_ends_) {
    if (exchange_->unanswered()) return answer_instead(504, "the request's deadline passed");
    return close(Gone::kDeadline);
  }
  if (grace_ends_ == TimePoint::max() && now >= exchange_->deadline()) {
    core_.timeouts.fetch_add(1, std::memory_order_relaxed);
    grace_ends_ = now + core_.options.limits.deadline_grace;
    exchange_->tell_gone(Gone::kDeadline);
  }
}

// A stream without events gets a comment; a client whose bytes we leave unread is looked for.
void Connection::check_silence(TimePoint now) {
  if (!exchange_) return;
  const Duration silence = exchange_->comment_after();
  if (silence > Duration::zero() && !writing_ && now >= last_write_ + silence && exchange_->queued_bytes() == 0) {
    last_write_ = now;
    exchange_->push(format_comment(kComment), true);
  }
  if (!stream_.reading() && !ended_ && stream_.peer_closed()) on_read_end(false, "the connection was closed");
}

void Connection::drain() {
  if (state_ == State::kIdle && !writing_) close();
}

std::optional<DrainReport::Cut> Connection::cut() {
  std::optional<DrainReport::Cut> cut;
  if (state_ == State::kAnswering && meta_.counted) {
    cut = {meta_.id, meta_.method, std::string(meta_.route), steady_clock().now() - meta_.received};
  }
  close(Gone::kShutdown);
  return cut;
}

// Ends our side and waits a moment for the client's: closing on unread bytes would reset the connection, and with it the answer.
void Connection::linger() {
  if (ended_) return close();
  state_ = State::kLingering;
  state_since_ = steady_clock().now();
  if (!consuming_) input_.clear();
  stream_.shutdown();
  read_more();
  arm();
}

void Connection::close(Gone gone) {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  const State before = state_;
  state_ = State::kClosed;
  stream_.close();
  if (const auto exchange = std::move(exchange_)) {
    if (gone != Gone::kNo) exchange->tell_gone(gone);
    report(false, exchange->gone());
    exchange->detach();
  } else if (before == State::kBody) {
    report(false, gone);
  }
  core_.body_bytes.fetch_sub(body_held_, std::memory_order_relaxed);
  body_held_ = 0;
  count_.fetch_sub(1, std::memory_order_relaxed);
  set_.remove(*this);
}

void Connection::report(bool complete, Gone gone) {
  if (meta_.counted) core_.active.fetch_sub(1, std::memory_order_relaxed);
  meta_.counted = false;
  core_.done.fetch_add(1, std::memory_order_relaxed);
  if (!core_.options.on_request_done) return;
  const TimePoint now = steady_clock().now();
  AccessRecord record;
  record.request_id = meta_.id;
  record.method = meta_.method;
  record.route = meta_.route;
  record.target = meta_.target;
  record.peer = peer_;
  record.user_agent = meta_.user_agent;
  record.traceparent = meta_.traceparent;
  record.status = meta_.status;
  record.bytes_in = meta_.bytes_in;
  record.bytes_out = meta_.bytes_out;
  record.to_handler = meta_.handled == TimePoint{} ? Duration::zero() : meta_.handled - meta_.received;
  record.to_first_byte = meta_.first_byte == TimePoint{} ? Duration::zero() : meta_.first_byte - meta_.received;
  record.total = now - meta_.received;
  record.streamed = meta_.streamed;
  record.complete = complete;
  record.gone = gone;
  core_.report(record);
}

}  // namespace weir::http
