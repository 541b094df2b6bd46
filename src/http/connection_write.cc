// SPDX-License-Identifier: Apache-2.0
// Answer → bytes.
#include <algorithm>

#include "http/connection.h"

namespace weir::http {

// An answer of our own: errors, OPTIONS, refusals.
void Connection::answer(Response response, bool and_close) {
  if (and_close) keep_alive_ = false;
  open_exchange();
  exchange_->respond(std::move(response));
  flush();
}

// The handler's turn is over: what it pushes from here on goes nowhere.
void Connection::answer_instead(int status, std::string_view message) {
  if (exchange_) exchange_->detach();
  keep_alive_ = false;
  open_exchange();
  exchange_->respond(core_.error(status, message));
  flush();
}

void Connection::on_exchange_changed() {
  flush();
  if (state_ != State::kClosed) arm();
}

void Connection::flush() {
  while (state_ == State::kAnswering && exchange_ && !writing_) {
    Exchange::Piece piece = exchange_->take();
    if (piece.empty()) return;
    // A client that went is why a handler gives up; a fault of ours is only what nobody answers although somebody waits.
    if (piece.abandoned && exchange_->gone() == Gone::kNo) return answer_instead(500, "the request was not answered");
    if (piece.abandoned) return close(exchange_->gone());
    if (piece.aborted) return close(exchange_->gone());
    if (!send(std::move(piece))) return;
  }
}

// False when the connection waits or is broken.
bool Connection::send(Exchange::Piece piece) {
  out_head_.clear();
  out_queued_ = piece.bytes.size();
  last_piece_ = piece.last;
  if (piece.head) {
    compose_head(piece);
  } else {
    out_body_ = std::move(piece.bytes);
  }
  const std::size_t size = out_head_.size() + out_body_.size();
  switch (size == 0 ? Stream::Write::kDone : stream_.write(out_head_, out_body_)) {
    case Stream::Write::kDone: after_write(); return true;
    case Stream::Write::kBroken: on_broken("the client is gone"); return false;
    case Stream::Write::kWaiting: break;
  }
  writing_ = true;
  const ServerLimits& limits = core_.options.limits;
  write_deadline_ = steady_clock().now() + limits.write_timeout +
                    std::chrono::milliseconds(size * 1000 / std::max<std::size_t>(limits.min_bytes_per_second, 1));
  return false;
}

void Connection::compose_head(Exchange::Piece& piece) {
  using Body = HeadFraming::Body;
  Response& response = *piece.head;
  const bool bodiless = response.status == 204 || response.status == 304 || response.status < 200;
  HeadFraming framing;
  framing.http_1_0 = meta_.minor_version == 0;
  framing.length = response.body.size();
  if (bodiless) {
    framing.body = Body::kNone;
  } else if (piece.streamed) {
    framing.body = framing.http_1_0 ? Body::kUntilClose : Body::kChunked;
  }
  const std::size_t most = core_.options.limits.max_requests_per_connection;
  if (core_.draining.load(std::memory_order_relaxed) || framing.body == Body::kUntilClose || ended_ || (most > 0 && requests_ >= most)) {
    keep_alive_ = false;
  }
  framing.keep_alive = keep_alive_;
  add_cors(core_.options.cors, meta_.origin, response.headers, false);
  out_head_ = format_response_head(response, framing, core_.options.server_name);
  out_body_ = head_only_ || bodiless || piece.streamed ? std::string() : std::move(response.body);
  meta_.status = response.status;
  meta_.streamed = piece.streamed;
}

void Connection::on_written() {
  writing_ = false;
  write_deadline_ = TimePoint::max();
  if (interim_) {
    interim_ = false;
  } else {
    after_write();
  }
  flush();
  if (state_ != State::kClosed) arm();
}

void Connection::after_write() {
  last_write_ = steady_clock().now();
  if (meta_.first_byte == TimePoint{}) meta_.first_byte = last_write_;
  meta_.bytes_out += out_head_.size() + out_body_.size();
  out_body_.clear();
  if (exchange_) exchange_->written(out_queued_);
  if (last_piece_) finish_exchange();
}

void Connection::finish_exchange() {
  last_piece_ = false;
  if (exchange_) {
    report(true, Gone::kNo);
    exchange_->detach();
    exchange_.reset();
  }
  core_.body_bytes.fetch_sub(body_held_, std::memory_order_relaxed);
  body_held_ = 0;
  if (!keep_alive_ || core_.draining.load(std::memory_order_relaxed)) return linger();
  begin_request();
  if (!consuming_ && !input_.empty()) consume({});
  read_more();
}

}  // namespace weir::http
