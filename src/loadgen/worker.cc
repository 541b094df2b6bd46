// SPDX-License-Identifier: Apache-2.0
#include "loadgen/worker.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir::loadgen {
namespace {

// Tags of moments: the loop's sockets have others of their own.
constexpr std::uint64_t kArrival = 1, kTick = 2, kWaiting = 3, kSession = 16;
constexpr Duration kTickTime = std::chrono::milliseconds(50);
constexpr std::size_t kMaxReserve = 2'000'000;

std::size_t share(std::int64_t total, int index, int count) {
  return static_cast<std::size_t>(total / count + (index < total % count ? 1 : 0));
}

}  // namespace

Worker::Worker(const LoadPlan& plan, const Target& target, const RunOptions& options, Progress& progress, int index, int count)
    : plan_(plan),
      target_(target),
      options_(options),
      progress_(progress),
      index_(index),
      count_(count),
      body_(plan.shape),
      think_(plan.seed, kThinkStream + (static_cast<std::uint64_t>(index) << 8)),
      next_arrival_(static_cast<std::size_t>(index)) {
  if (options.max_concurrency > 0) cap_ = std::max<std::size_t>(1, share(options.max_concurrency, index, count));
  const std::size_t requests = plan.arrivals.empty() ? static_cast<std::size_t>(plan.closed_requests) : plan.arrivals.size();
  records_.reserve(std::min(kMaxReserve, requests / static_cast<std::size_t>(count) + 1));
}

Result<std::unique_ptr<Worker>> Worker::make(const LoadPlan& plan, const Target& target, const RunOptions& options, Progress& progress,
                                             int index, int count) {
  std::unique_ptr<Worker> worker(new Worker(plan, target, options, progress, index, count));
  WEIR_ASSIGN(worker->loop_, EventLoop::make(options.spin));
  return worker;
}

Status Worker::warm_up() {
  std::int64_t wanted = options_.warm_connections;
  if (options_.max_concurrency > 0) wanted = std::min(wanted, options_.max_concurrency);
  wanted = std::min<std::int64_t>(wanted, plan_.arrivals.empty() ? plan_.users : static_cast<std::int64_t>(plan_.arrivals.size()));
  std::vector<pollfd> polled;
  std::vector<Connection*> opening;
  for (std::size_t i = share(wanted, index_, count_); i > 0; --i) {
    Connection* connection = connect();
    if (!connection) return fail(ErrorCode::kNetwork, "connecting: {}", std::strerror(errno));
    opening.push_back(connection);
  }
  const TimePoint until = steady_clock().now() + std::chrono::seconds(10);
  while (!opening.empty() && steady_clock().now() < until) {
    polled.clear();
    for (const Connection* c : opening) polled.push_back({c->wire.fd(), static_cast<short>(c->wire.wants_write() ? POLLOUT : POLLIN), 0});
    if (::poll(polled.data(), polled.size(), 100) < 0 && errno != EINTR) break;
    std::vector<Connection*> left;
    for (std::size_t i = 0; i < opening.size(); ++i) {
      const Wire::Ready ready = polled[i].revents ? opening[i]->wire.progress() : Wire::Ready::kNotYet;
      if (ready == Wire::Ready::kFailed) return fail(ErrorCode::kNetwork, "connecting: {}", opening[i]->wire.failure());
      if (ready == Wire::Ready::kNotYet) {
        left.push_back(opening[i]);
        continue;
      }
      opening[i]->open = true;
      WEIR_TRY(loop_->change(opening[i]->wire.fd(), EPOLLIN, opening[i]->tag));
      idle_.push_back(opening[i]);
    }
    opening = std::move(left);
  }
  if (!opening.empty()) return fail(ErrorCode::kDeadline, "connecting took longer than 10 s");
  return {};
}

void Worker::run(TimePoint start) {
  start_ = start;
  if (plan_.arrivals.empty()) {
    loop_->at(start, kArrival);
  } else {
    const std::size_t mine = (plan_.arrivals.size() + static_cast<std::size_t>(count_ - index_) - 1) / static_cast<std::size_t>(count_);
    if (mine > 0) last_arrival_ = plan_.arrivals[static_cast<std::size_t>(index_) + (mine - 1) * static_cast<std::size_t>(count_)];
    prepare_next();
  }
  loop_->at(start + kTickTime, kTick);
  stop_if_over();
  loop_->run(*this);
  usage_ = loop_->usage();
}

void Worker::on_due(std::uint64_t tag, TimePoint) {
  if (tag == kTick) return tick();
  if (tag == kWaiting) return next_waiting(since_start());
  if (tag == kArrival) return plan_.arrivals.empty() ? begin_closed() : arrive();
  const std::size_t slot = tag - kSession;
  submit(slot, sessions_[slot].ready, sessions_[slot].ready);
}

const Conversation& Worker::conversation_of(const Session& session) const {
  return plan_.conversations[session.conversation % plan_.conversations.size()];
}

bool Worker::more_conversations() const {
  if (!plan_.arrivals.empty()) return next_arrival_ < plan_.arrivals.size();
  if (plan_.closed_requests > 0) return next_arrival_ < static_cast<std::size_t>(plan_.closed_requests);
  return since_start() < plan_.closed_length;
}

std::size_t Worker::new_session(std::size_t conversation) {
  std::size_t slot = sessions_.size();
  if (free_sessions_.empty()) {
    sessions_.emplace_back();
  } else {
    slot = free_sessions_.back();
    free_sessions_.pop_back();
  }
  Session& session = sessions_[slot];
  session.conversation = conversation;
  session.turn = 0;
  session.history.clear();
  ++sessions_open_;
  make_request(session);
  return slot;
}

void Worker::make_request(Session& session) {
  const Turn& turn = conversation_of(session).turns[session.turn];
  if (session.turn > 0) session.history += ',';
  if (conversation_of(session).turns.size() > 1) session.history += turn.content;
  const std::string_view content = conversation_of(session).turns.size() > 1 ? session.history : turn.content;
  session.bytes = target_.head;
  session.bytes += fmt::format("{}\r\n\r\n", body_.size(content, turn.max_tokens));
  body_.append(session.bytes, content, turn.max_tokens);
}

// The next request is made before it is due.
void Worker::prepare_next() {
  if (!more_conversations()) return;
  prepared_ = new_session(next_arrival_);
  loop_->at(start_ + plan_.arrivals[next_arrival_], kArrival);
}

void Worker::arrive() {
  const Duration scheduled = plan_.arrivals[next_arrival_];
  next_arrival_ += static_cast<std::size_t>(count_);
  submit(std::exchange(prepared_, kNone), scheduled, scheduled);
  prepare_next();
  stop_if_over();
}

void Worker::begin_closed() {
  for (std::size_t users = share(plan_.users, index_, count_); users > 0 && more_conversations(); --users) {
    const std::size_t slot = new_session(next_arrival_);
    next_arrival_ += static_cast<std::size_t>(count_);
    const Duration now = since_start();
    submit(slot, now, now);
  }
  stop_if_over();
}

void Worker::submit(std::size_t slot, Duration scheduled, Duration eligible) {
  Session& session = sessions_[slot];
  session.record = records_.size();
  RequestRecord& record = records_.emplace_back();
  record.scheduled = scheduled;
  record.eligible = eligible;
  record.turn = static_cast<std::uint16_t>(std::min<std::size_t>(session.turn, 0xffff));
  record.conversation = static_cast<std::uint32_t>(session.conversation);
  if (cap_ > 0 && active_ >= cap_) {
    waiting_.push_back(slot);
    progress_.waiting.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  start(slot);
}

// The same user's next turn, or, in a closed loop, the next conversation; both after the think time.
void Worker::end_turn(std::size_t slot, bool ok, std::string answer) {
  const Duration now = records_[sessions_[slot].record].done;
  const auto pause = [&] { return now + to_duration(plan_.think.draw(think_)); };
  if (ok && sessions_[slot].turn + 1 < conversation_of(sessions_[slot]).turns.size() && !interrupted_) {
    Session& session = sessions_[slot];
    ++session.turn;
    session.history += "," + message("assistant", answer);
    make_request(session);
    session.ready = pause();
    loop_->at(start_ + session.ready, kSession + slot);
    return;
  }
  free_sessions_.push_back(slot);
  --sessions_open_;
  if (!waiting_.empty() && active_ < cap_) loop_->at(start_ + now, kWaiting);  // the one before it never got a connection
  if (plan_.arrivals.empty() && more_conversations() && !interrupted_) {
    const std::size_t next = new_session(next_arrival_);
    next_arrival_ += static_cast<std::size_t>(count_);
    sessions_[next].ready = pause();
    loop_->at(start_ + sessions_[next].ready, kSession + next);
  }
  stop_if_over();
}

void Worker::tick() {
  const Duration now = since_start();
  if (progress_.stop.load(std::memory_order_relaxed)) interrupted_ = true;
  const bool arrivals_over = plan_.arrivals.empty() ? !more_conversations() : next_arrival_ >= plan_.arrivals.size();
  const Duration end = plan_.arrivals.empty() ? plan_.closed_length : last_arrival_;
  if (interrupted_ || (arrivals_over && now > end + options_.drain && (!plan_.arrivals.empty() || plan_.closed_length > Duration::zero())))
    return loop_->stop();
  std::vector<Connection*> late;
  for (auto& [tag, connection] : connections_) {
    if (connection->session == kNone) continue;
    const RequestRecord& record = records_[sessions_[connection->session].record];
    if (now - record.started > options_.timeout) late.push_back(connection.get());
  }
  for (Connection* connection : late) broken(*connection, Outcome::kTimeout, "no answer within the time limit");
  graveyard_.clear();
  loop_->at(start_ + now + kTickTime, kTick);
}

void Worker::stop_if_over() {
  if (sessions_open_ == 0 && !more_conversations()) loop_->stop();
}

void Worker::take_results(RunResult& result, std::vector<float>& read_lags) {
  for (RequestRecord& record : records_) result.records.push_back(std::move(record));
  result.workers.push_back(usage_);
  result.connections_opened += opened_;
  result.resent += resent_;
  result.interrupted |= interrupted_;
  if (result.first_error.empty()) result.first_error = first_error_;
  read_lags.insert(read_lags.end(), read_lags_.begin(), read_lags_.end());
}

}  // namespace weir::loadgen
