// SPDX-License-Identifier: Apache-2.0
// Bytes → request → handler.
#include "base/log.h"
#include "http/connection.h"

namespace weir::http {
namespace {

constexpr std::size_t kLingerBytes = 1u << 20;

}  // namespace

void Connection::read_more() {
  if (ended_ || state_ == State::kClosed) return;
  if (state_ == State::kAnswering && input_.size() >= core_.options.limits.max_pipelined_bytes) return;
  stream_.read();
}

void Connection::on_read(std::string_view bytes) {
  if (state_ == State::kLingering) {
    lingered_bytes_ += bytes.size();
    if (lingered_bytes_ > kLingerBytes) return close();
    read_more();
    return;
  }
  consume(bytes);
  read_more();
  if (state_ != State::kClosed) arm();
}

void Connection::on_read_end(bool clean, const std::string& reason) {
  log::debug("http: {}: {}", peer_, reason);
  ended_ = true;
  if (state_ != State::kAnswering) return close();
  if (!meta_.counted && clean) return;  // an answer of our own is on its way out
  core_.clients_gone.fetch_add(1, std::memory_order_relaxed);
  // Ending one side only is allowed, and some clients do before they read the answer; a stream's reader does not.
  if (!clean || meta_.streamed || !exchange_) return close();
  keep_alive_ = false;
  exchange_->tell_gone(Gone::kClientClosed);
  if (state_ != State::kClosed) arm();
}

// Parses what is there, request after request, as long as their answers are over at once.
void Connection::consume(std::string_view bytes) {
  if (consuming_) return;
  consuming_ = true;
  const bool buffered = !input_.empty();
  if (buffered) input_ += bytes;
  const std::string_view all = buffered ? std::string_view(input_) : bytes;
  std::size_t used = 0;
  parse(all, used);
  consuming_ = false;
  if (state_ == State::kLingering || state_ == State::kClosed) {
    input_.clear();
  } else if (buffered) {
    input_.erase(0, used);
  } else {
    input_.assign(all.substr(used));
  }
}

void Connection::parse(std::string_view bytes, std::size_t& used) {
  while (state_ == State::kIdle || state_ == State::kHead || state_ == State::kBody) {
    const std::string_view rest = bytes.substr(used);
    const std::size_t now = parser_->parse(rest);
    used += now;
    note_progress();
    if (parser_->failure()) {
      core_.malformed.fetch_add(1, std::memory_order_relaxed);
      return refuse(parser_->failure()->status, parser_->failure()->message);
    }
    if (state_ == State::kHead && parser_->head_done()) {
      if (!on_head()) continue;
      send_continue(parser_->request(), used < bytes.size());
      if (state_ != State::kHead) return;
      state_ = State::kBody;
      state_since_ = steady_clock().now();
    }
    if (state_ == State::kBody) {
      if (!hold_body()) return;
      if (parser_->done()) {
        call_handler();
        continue;
      }
    }
    if (now == 0) return;
  }
}

void Connection::note_progress() {
  if (state_ != State::kIdle || !parser_->started()) return;
  state_ = State::kHead;
  state_since_ = meta_.received = steady_clock().now();
}

void Connection::begin_request() {
  meta_ = Meta{};
  meta_.received = steady_clock().now();
  parser_.emplace(core_.options.limits.head);
  route_ = nullptr;
  state_ = State::kIdle;
  state_since_ = meta_.received;
  body_seen_ = 0;
  head_only_ = false;
  grace_ends_ = TimePoint::max();
}

void Connection::fill_meta(const Request& request) {
  meta_.method = request.method;
  meta_.target = request.target;
  meta_.user_agent = request.headers.get("User-Agent");
  meta_.traceparent = request.headers.get("traceparent");
  meta_.origin = request.headers.get("Origin");
  meta_.minor_version = request.minor_version;
}

// The head is there: who answers it, and may its body come? False when it has been answered here.
bool Connection::on_head() {
  Request& request = parser_->request();
  ++requests_;
  meta_.id = request.id = core_.next_request_id.fetch_add(1, std::memory_order_relaxed);
  fill_meta(request);
  keep_alive_ = request.keep_alive;
  head_only_ = request.method == "HEAD";
  request.peer = peer_;
  request.client_certificate = certificate_;
  request.received = meta_.received;
  if (!choose_route(request) || !precheck(request)) return false;
  parser_->limit_body(route_->max_body_bytes);
  if (parser_->failure()) {
    refuse(parser_->failure()->status, parser_->failure()->message);
    return false;
  }
  if (request.headers.has("Expect") && !equal_ignoring_case(request.header("Expect"), "100-continue")) {
    refuse(417, "the only expectation known is 100-continue");
    return false;
  }
  return true;
}

bool Connection::choose_route(Request& request) {
  Router::Match match = core_.router.match(request.method, request.path);
  if (match.route) {
    route_ = match.route;
    meta_.route = request.route = route_->pattern;
    request.parameters = std::move(match.parameters);
    return true;
  }
  if (request.method == "OPTIONS" && answer_options(request)) return false;
  const bool and_close = parser_->expects_body();  // it is not read
  if (match.bad_path) {
    answer(core_.error(400, "the request's path has a broken escape"), and_close);
  } else if (match.allow.empty()) {
    answer(core_.error(404, "there is nothing at this path"), and_close);
  } else {
    Response response = core_.error(405, "this path does not know this method");
    response.headers.set("Allow", match.allow);
    answer(std::move(response), and_close);
  }
  return false;
}

bool Connection::answer_options(const Request& request) {
  const std::string allow = request.target == "*" ? core_.router.all_methods() : core_.router.match("OPTIONS", request.path).allow;
  if (allow.empty()) return false;
  Response response{204, {}, {}};
  response.headers.add("Allow", allow);
  if (request.headers.has("Access-Control-Request-Method")) {
    add_cors(core_.options.cors, request.header("Origin"), response.headers, true);
    meta_.origin.clear();  // done
  }
  answer(std::move(response), parser_->expects_body());
  return true;
}

bool Connection::precheck(const Request& request) {
  if (!route_->precheck) return true;
  std::optional<Response> refusal;
  try {
    refusal = route_->precheck(request);
  } catch (const std::exception& fault) {
    log::error("http: the check of {} failed: {}", route_->pattern, fault.what());
    refusal = core_.error(500, "internal error");
  }
  if (!refusal) return true;
  answer(std::move(*refusal), parser_->expects_body());
  return false;
}

void Connection::send_continue(const Request& request, bool body_has_begun) {
  if (!request.headers.has("Expect") || body_has_begun || !parser_->expects_body() || request.minor_version == 0 || writing_) return;
  out_head_ = "HTTP/1.1 100 Continue\r\n\r\n";
  switch (stream_.write(out_head_)) {
    case Stream::Write::kDone: return;
    case Stream::Write::kBroken: return close();
    case Stream::Write::kWaiting: interim_ = writing_ = true;
  }
}

// All bodies together have a limit, whatever each route allows.
bool Connection::hold_body() {
  const std::uint64_t size = parser_->request().body.size();
  body_seen_ = size;
  const std::uint64_t more = size - body_held_;
  if (more == 0) return true;
  body_held_ = size;
  meta_.bytes_in = size;
  if (core_.body_bytes.fetch_add(more, std::memory_order_relaxed) + more <= core_.options.limits.max_total_body_bytes) return true;
  refuse(503, "the server holds too many request bodies");
  return false;
}

void Connection::open_exchange() {
  exchange_ = std::make_shared<Exchange>(loop_.inbox(), *this, meta_.id, Exchange::Framing{meta_.minor_version > 0, head_only_});
  state_ = State::kAnswering;
  grace_ends_ = TimePoint::max();
}

void Connection::call_handler() {
  open_exchange();
  meta_.handled = steady_clock().now();
  meta_.counted = true;
  core_.active.fetch_add(1, std::memory_order_relaxed);
  if (route_->deadline > Duration::zero()) exchange_->set_deadline(meta_.received + route_->deadline);
  Responder responder(exchange_);
  try {
    route_->handler(std::move(parser_->request()), responder);
  } catch (const std::exception& fault) {
    log::error("http: the handler of {} failed: {}", route_->pattern, fault.what());
    if (!responder.respond(core_.error(500, "internal error"))) responder.abort();
  } catch (...) {
    log::error("http: the handler of {} failed", route_->pattern);
    if (!responder.respond(core_.error(500, "internal error"))) responder.abort();
  }
  responder = Responder(nullptr);
  flush();
}

}  // namespace weir::http
