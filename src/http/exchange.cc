// SPDX-License-Identifier: Apache-2.0
#include "http/exchange.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "http/sse.h"

namespace weir::http {
namespace {

constexpr std::size_t kBytesAtOnce = 64u << 10;

// A caller's function: its fault must not stop what the connection is about.
template <class Callback, class... Arguments>
void call(const Callback& callback, Arguments... arguments) {
  if (!callback) return;
  try {
    callback(arguments...);
  } catch (const std::exception& fault) {
    log::error("http: a responder's callback failed: {}", fault.what());
  }
}

bool still_heard(Gone gone) { return gone == Gone::kNo || gone == Gone::kDeadline; }

}  // namespace

std::string_view gone_name(Gone gone) {
  switch (gone) {
    case Gone::kNo: return "no";
    case Gone::kClientClosed: return "client_closed";
    case Gone::kTooSlow: return "too_slow";
    case Gone::kDeadline: return "deadline";
    case Gone::kShutdown: return "shutdown";
  }
  return "unknown";
}

void Exchange::release() {
  if (handles_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kUnanswered && phase_ != Phase::kStreaming) return;
    abandoned_ = phase_ == Phase::kUnanswered;
    phase_ = Phase::kAborted;
  }
  wake();
}

bool Exchange::respond(Response response) {
  {
    const std::lock_guard lock(mutex_);
    // A client that only ended its own side may still read an answer; who is really gone is found when it is written.
    if (phase_ != Phase::kUnanswered || gone() == Gone::kTooSlow || gone() == Gone::kShutdown) return false;
    head_ = std::move(response);
    phase_ = Phase::kFinished;
  }
  wake();
  return true;
}

bool Exchange::start(int status, Headers headers, const StreamOptions& options) {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kUnanswered || !still_heard(gone())) return false;
    head_ = Response{status, std::move(headers), {}};
    options_ = options;
    streamed_ = true;
    phase_ = Phase::kStreaming;
  }
  wake();
  return true;
}

std::string Exchange::framed(std::string bytes) const {
  if (!framing_.chunked) return bytes;
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

Push Exchange::push(std::string bytes, bool alone) {
  if (!still_heard(gone())) return Push::kGone;
  std::string block = framed(std::move(bytes));
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kStreaming) return Push::kGone;
    if (framing_.head_only) return Push::kOk;
    if (queued_ > 0 && queued_ + block.size() > options_.max_queued_bytes) {
      if (options_.overflow == Overflow::kRefuse) {
        wants_room_ = true;
        return Push::kFull;
      }
      gone_.store(Gone::kTooSlow, std::memory_order_release);
      phase_ = Phase::kAborted;
    } else {
      queued_ += block.size();
      blocks_.push_back({std::move(block), alone});
    }
  }
  wake();
  return gone() == Gone::kTooSlow ? Push::kGone : Push::kOk;
}

bool Exchange::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kStreaming) return false;
    phase_ = Phase::kFinished;
  }
  wake();
  return true;
}

bool Exchange::abort() {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kUnanswered && phase_ != Phase::kStreaming) return false;
    phase_ = Phase::kAborted;
  }
  wake();
  return true;
}

void Exchange::on_gone(std::function<void(Gone)> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kFinished || (phase_ == Phase::kDetached && gone() == Gone::kNo)) return;
    if (gone() == Gone::kNo) {
      on_gone_.swap(callback);
      return;
    }
  }
  call(callback, gone());
}

void Exchange::on_writable(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kUnanswered || phase_ == Phase::kStreaming) on_writable_.swap(callback);
}

void Exchange::set_deadline(TimePoint when) {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = when;
  }
  wake();
}

std::size_t Exchange::queued_bytes() {
  const std::lock_guard lock(mutex_);
  return queued_;
}

Exchange::Piece Exchange::take() {
  const std::lock_guard lock(mutex_);
  Piece piece;
  if (phase_ == Phase::kDetached || end_taken_) return piece;
  if (phase_ == Phase::kAborted) {
    piece.aborted = !abandoned_;
    piece.abandoned = abandoned_;
    end_taken_ = true;
    return piece;
  }
  if (head_) {
    piece.head = std::move(head_);
    head_.reset();
    piece.streamed = streamed_;
    if (streamed_) return piece;  // a stream's head goes out alone
  } else if (phase_ == Phase::kUnanswered) {
    return piece;
  }
  append_blocks(piece);
  if (phase_ == Phase::kFinished && blocks_.empty()) {
    if (streamed_ && framing_.chunked && !framing_.head_only) piece.bytes += "0\r\n\r\n";
    piece.last = end_taken_ = true;
  }
  return piece;
}

// One event, or as many pieces of a plain stream as one write takes well.
void Exchange::append_blocks(Piece& piece) {
  while (!blocks_.empty()) {
    Block& block = blocks_.front();
    if (!piece.bytes.empty() && (block.alone || piece.bytes.size() + block.bytes.size() > kBytesAtOnce)) return;
    const bool alone = block.alone;
    if (piece.bytes.empty()) {
      piece.bytes = std::move(block.bytes);
    } else {
      piece.bytes += block.bytes;
    }
    blocks_.pop_front();
    if (alone) return;
  }
}

void Exchange::written(std::size_t bytes) {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    queued_ -= std::min(queued_, bytes);
    if (!wants_room_ || queued_ > options_.max_queued_bytes / 2 || phase_ != Phase::kStreaming) return;
    wants_room_ = false;
    callback = on_writable_;
  }
  call(callback);
}

void Exchange::tell_gone(Gone reason) {
  std::function<void(Gone)> callback;
  {
    const std::lock_guard lock(mutex_);
    if (gone() == Gone::kNo || gone() == Gone::kDeadline) gone_.store(reason, std::memory_order_release);
    if (told_ || phase_ == Phase::kFinished || phase_ == Phase::kDetached) return;
    told_ = static_cast<bool>(on_gone_);
    callback.swap(on_gone_);
  }
  call(callback, gone());
}

TimePoint Exchange::deadline() {
  const std::lock_guard lock(mutex_);
  return deadline_;
}

Duration Exchange::comment_after() {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::kStreaming && !head_ ? options_.comment_after : Duration::zero();
}

bool Exchange::unanswered() {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::kUnanswered;
}

void Exchange::detach() {
  owner_ = nullptr;
  std::function<void(Gone)> gone_callback;
  std::function<void()> room_callback;
  std::deque<Block> blocks;
  {
    const std::lock_guard lock(mutex_);
    phase_ = Phase::kDetached;
    gone_callback.swap(on_gone_);
    room_callback.swap(on_writable_);
    blocks.swap(blocks_);
  }
}

void Exchange::woken() {
  waking_.store(false, std::memory_order_release);
  if (owner_) owner_->on_exchange_changed();
}

Responder::Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {
  if (exchange_) exchange_->hold();
}
Responder::~Responder() { release(); }
Responder::Responder(const Responder& other) : Responder(other.exchange_) {}
Responder::Responder(Responder&& other) noexcept : exchange_(std::move(other.exchange_)) {}
Responder& Responder::operator=(const Responder& other) {
  if (this != &other) *this = Responder(other);
  return *this;
}
Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    release();
    exchange_ = std::move(other.exchange_);
  }
  return *this;
}
void Responder::release() {
  if (const auto exchange = std::move(exchange_)) exchange->release();
}

bool Responder::respond(Response response) const { return exchange_->respond(std::move(response)); }
bool Responder::start_stream(int status, Headers headers, const StreamOptions& options) const {
  return exchange_->start(status, std::move(headers), options);
}
Push Responder::write(std::string_view bytes) const {
  if (bytes.empty()) return exchange_->gone() == Gone::kNo ? Push::kOk : Push::kGone;  // an empty chunk would end the stream
  return exchange_->push(std::string(bytes), false);
}
bool Responder::start_events(Headers headers, const StreamOptions& options) const {
  headers.set("Content-Type", "text/event-stream; charset=utf-8");
  headers.set("Cache-Control", "no-cache");
  headers.set("X-Accel-Buffering", "no");  // nginx
  return exchange_->start(200, std::move(headers), options);
}
Push Responder::send_event(std::string_view data, std::string_view event, std::string_view id) const {
  return exchange_->push(format_event(data, event, id), true);
}
Push Responder::send_comment(std::string_view text) const { return exchange_->push(format_comment(text), true); }
bool Responder::finish() const { return exchange_->finish(); }
bool Responder::abort() const { return exchange_->abort(); }
void Responder::on_gone(std::function<void(Gone)> callback) const { exchange_->on_gone(std::move(callback)); }
Gone Responder::gone() const { return exchange_->gone(); }
void Responder::on_writable(std::function<void()> callback) const { exchange_->on_writable(std::move(callback)); }
std::size_t Responder::queued_bytes() const { return exchange_->queued_bytes(); }
void Responder::set_deadline(TimePoint when) const { exchange_->set_deadline(when); }
std::uint64_t Responder::request_id() const { return exchange_->request_id(); }

}  // namespace weir::http
