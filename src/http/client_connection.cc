// SPDX-License-Identifier: Apache-2.0
#include "http/client_connection.h"

#include <algorithm>

#include "base/log.h"
#include "http/head_syntax.h"

namespace weir::http {
namespace {

template <class Callback, class... Arguments>
void call(const Callback& callback, Arguments&&... arguments) {
  if (!callback) return;
  try {
    callback(std::forward<Arguments>(arguments)...);
  } catch (const std::exception& fault) {
    log::error("http: a callback of the client failed: {}", fault.what());
  }
}

bool safe_to_repeat(const ClientRequest& request) {
  const std::string& method = request.method;
  return request.repeatable || method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" || method == "DELETE";
}

bool is_set_by_client(std::string_view name) {
  return equal_ignoring_case(name, "Host") || equal_ignoring_case(name, "Content-Length") || equal_ignoring_case(name, "Connection") ||
         equal_ignoring_case(name, "Transfer-Encoding");
}

}  // namespace

void ClientExchange::finish(Status status) {
  if (over) return;
  over = true;
  const ClientHandlers told = std::move(handlers);  // what they hold ends with this call
  handlers = {};
  if (!told.on_done) return;
  try {
    told.on_done(std::move(status), response);
  } catch (const std::exception& fault) {
    log::error("http: a callback of the client failed: {}", fault.what());
  }
}

ClientConnection::ClientConnection(Loop& loop, ClientConnectionOwner& owner, std::string key, std::shared_ptr<TlsContext> tls,
                                   const std::string& user_agent)
    : owner_(owner), key_(std::move(key)), tls_(std::move(tls)), user_agent_(user_agent), stream_(loop, *this) {}

ClientConnection::~ClientConnection() = default;

void ClientConnection::begin(std::shared_ptr<ClientExchange> exchange) {
  exchange_ = std::move(exchange);
  exchange_->connection = std::static_pointer_cast<ClientConnection>(shared_from_this());
  arm();
}

void ClientConnection::resolved(std::vector<SocketAddress> addresses) {
  if (state_ != State::kConnecting) return;
  addresses_ = std::move(addresses);
  connect_next("the name has no address");
}

void ClientConnection::connect_next(const std::string& reason) {
  if (next_address_ >= addresses_.size()) return failed(ErrorCode::kNetwork, "connecting: " + reason);
  stream_.connect(addresses_[next_address_++]);
  arm();
}

void ClientConnection::carry(std::shared_ptr<ClientExchange> exchange) {
  exchange_ = std::move(exchange);
  exchange_->connection = std::static_pointer_cast<ClientConnection>(shared_from_this());
  exchange_->response.times.reused = true;
  send();
}

void ClientConnection::keep_until(TimePoint when) {
  kept_until_ = when;
  stream_.set_timer(when);
}

void ClientConnection::on_ready() {
  if (state_ == State::kConnecting && tls_) {
    state_ = State::kSecuring;
    stream_.connect_tls(tls_, exchange_->url.host);
    return;
  }
  send();
}

std::string ClientConnection::format_head() const {
  const ClientRequest& request = exchange_->request;
  std::string out = request.method + " " + exchange_->url.target + " HTTP/1.1\r\nHost: " + exchange_->url.authority + "\r\n";
  const auto add = [&](std::string_view name, std::string_view value) { out.append(name).append(": ").append(value).append("\r\n"); };
  if (!request.headers.has("User-Agent") && !user_agent_.empty()) add("User-Agent", user_agent_);
  for (const auto& [name, value] : request.headers) {
    if (is_token(name) && !is_set_by_client(name)) add(name, header_safe(value));
  }
  const bool bodiless = request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
  if (!request.body.empty() || !bodiless) add("Content-Length", std::to_string(request.body.size()));
  out += "\r\n";
  return out;
}

void ClientConnection::send() {
  state_ = State::kActive;
  head_told_ = false;
  parser_.emplace(exchange_->request.method == "HEAD");
  exchange_->response.times.connected = last_read_ = steady_clock().now();
  out_head_ = format_head();
  stream_.read();  // a server may answer before it has read everything
  sending_ = true;
  switch (stream_.write(out_head_, exchange_->request.body)) {
    case Stream::Write::kDone: sent(); break;
    case Stream::Write::kWaiting: break;
    case Stream::Write::kBroken: return on_broken("the connection was closed");
  }
  arm();
}

void ClientConnection::sent() {
  sending_ = false;
  if (exchange_) exchange_->response.times.sent = steady_clock().now();
}

void ClientConnection::on_written() {
  sent();
  if (!exchange_) return close();  // the answer was over before the request
  arm();
}

void ClientConnection::on_broken(const std::string& reason) {
  if (state_ == State::kConnecting && next_address_ < addresses_.size()) {
    stream_.close();
    return connect_next(reason);
  }
  // A server that refuses a large request answers and closes: its answer counts more than our broken write.
  if (state_ == State::kActive && sending_ && stream_.reading()) {
    sending_ = false;
    return;
  }
  failed(ErrorCode::kNetwork, state_ == State::kConnecting ? "connecting: " + reason : reason);
}

void ClientConnection::failed(ErrorCode code, const std::string& reason) {
  const auto self = shared_from_this();
  const auto exchange = std::move(exchange_);
  close();
  if (!exchange || exchange->over) return;
  const ClientTimes& times = exchange->response.times;
  if (code == ErrorCode::kNetwork && times.reused && times.first_byte == TimePoint{} && !exchange->repeated &&
      safe_to_repeat(exchange->request)) {
    exchange->repeated = true;
    exchange->response.times.reused = false;
    return owner_.send_again(exchange);
  }
  exchange->finish(fail(code, "{} {}: {}", exchange->request.method, exchange->request.url, reason));
}

void ClientConnection::close() {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  state_ = State::kClosed;
  stream_.close();
  owner_.remove(*this);
}

void ClientConnection::on_read(std::string_view bytes) {
  if (state_ != State::kActive) return close();  // nobody asked
  last_read_ = steady_clock().now();
  ClientTimes& times = exchange_->response.times;
  if (times.first_byte == TimePoint{}) times.first_byte = last_read_;
  times.last_byte = last_read_;
  receive(bytes);
  if (state_ == State::kClosed) return;
  stream_.read();
  arm();
}

void ClientConnection::receive(std::string_view bytes) {
  const bool buffered = !input_.empty();
  if (buffered) input_ += bytes;
  const std::string_view all = buffered ? std::string_view(input_) : bytes;
  piece_.clear();
  const std::size_t used = parser_->parse(all, piece_);
  if (buffered) {
    input_.erase(0, used);
  } else {
    input_.assign(all.substr(used));
  }
  if (!deliver()) return;
  if (!parser_->failure().empty()) return failed(ErrorCode::kCorrupt, parser_->failure());
  if (parser_->done()) complete();
}

void ClientConnection::begin_body() {
  head_told_ = true;
  ClientExchange& exchange = *exchange_;
  exchange.response.status = parser_->status();
  exchange.response.headers = parser_->headers();
  exchange.event_stream = exchange.handlers.on_event && exchange.response.status == 200 &&
                          exchange.response.headers.get("Content-Type").starts_with("text/event-stream");
  call(exchange.handlers.on_head, exchange.response);
}

// Tells what has arrived. False when the request is over by that.
bool ClientConnection::deliver() {
  const auto exchange = exchange_;
  if (parser_->head_done() && !head_told_) begin_body();
  if (piece_.empty()) return true;
  exchange->response.body_bytes += piece_.size();
  if (exchange->event_stream) {
    const bool fits = exchange->events.feed(piece_, [&](SseEvent& event) { call(exchange->handlers.on_event, event); });
    if (!fits) failed(ErrorCode::kExhausted, "an event is too large");
    return fits && exchange_ != nullptr;
  }
  if (exchange->handlers.on_body) {
    call(exchange->handlers.on_body, std::string_view(piece_));
    return exchange_ != nullptr;
  }
  if (exchange->response.body_bytes > exchange->request.max_body_bytes) {
    failed(ErrorCode::kExhausted, fmt::format("the response has more than {} bytes", exchange->request.max_body_bytes));
    return false;
  }
  exchange->response.body += piece_;
  return true;
}

void ClientConnection::complete() {
  const auto self = shared_from_this();
  const auto exchange = std::move(exchange_);
  const bool keep = parser_->keep_alive() && !sending_ && input_.empty() && !exchange->request.fresh_connection;
  if (keep) {
    state_ = State::kKept;
    owner_.keep(*this);  // it may close the connection
  } else {
    close();
  }
  exchange->finish({});
}

void ClientConnection::on_read_end(bool, const std::string& reason) {
  if (state_ != State::kActive) return failed(ErrorCode::kNetwork, reason);
  piece_.clear();
  parser_->end();
  if (parser_->done() && parser_->failure().empty()) {
    if (deliver()) complete();
    close();
    return;
  }
  failed(ErrorCode::kNetwork, parser_->head_done() ? parser_->failure() : reason);
}

TimePoint ClientConnection::next_deadline(const char** what) const {
  TimePoint next = TimePoint::max();
  if (!exchange_) return next;
  const auto consider = [&](TimePoint from, Duration time, const char* name) {
    if (time <= Duration::zero() || from + time >= next) return;
    next = from + time;
    *what = name;
  };
  const ClientRequest& request = exchange_->request;
  const ClientTimes& times = exchange_->response.times;
  consider(times.started, request.total_timeout, "the response took too long");
  if (state_ == State::kConnecting || state_ == State::kSecuring) {
    consider(times.started, request.connect_timeout, "connecting took too long");
  } else if (times.first_byte == TimePoint{}) {
    consider(times.connected, request.first_byte_timeout, "no answer began in time");
  } else {
    consider(last_read_, request.silence_timeout, "the response fell silent");
  }
  return next;
}

void ClientConnection::arm() {
  const char* what = nullptr;
  if (const TimePoint next = next_deadline(&what); next != TimePoint::max()) stream_.set_timer(next);
}

void ClientConnection::on_timer() {
  if (state_ == State::kKept) return steady_clock().now() >= kept_until_ ? close() : stream_.set_timer(kept_until_);
  const char* what = "";
  if (next_deadline(&what) <= steady_clock().now()) return failed(ErrorCode::kDeadline, what);
  arm();
}

}  // namespace weir::http
