// SPDX-License-Identifier: Apache-2.0
#include "http/request_parser.h"

#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>

namespace weir::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using View = beast::string_view;

std::string_view plain(View text) { return {text.data(), text.size()}; }

}  // namespace

// What Beast makes of the head; bodies are not its business here.
class RequestParser::Framing final : public beast::http::basic_parser<true> {
 public:
  Framing() {
    body_limit(boost::none);
    header_limit(0xffffffffu);  // HeadSyntax has looked already
  }
  Request request;

 private:
  void on_request_impl(beast::http::verb, View method, View target, int version, error_code&) override {
    request.method = plain(method);
    request.target = plain(target);
    // As if it had come in the usual form; whose name it is asked by changes nothing here.
    if (const auto start = absolute_path_start(request.target)) request.target.erase(0, *start);
    if (request.target.empty() || request.target.front() == '?') request.target.insert(0, 1, '/');
    const std::size_t question = std::min(request.target.find('?'), request.target.size());
    request.path = request.target.substr(0, question);
    if (question < request.target.size()) request.query = request.target.substr(question + 1);
    request.minor_version = version % 10;
  }
  void on_response_impl(int, View, int, error_code&) override {}
  void on_field_impl(beast::http::field, View name, View value, error_code&) override { request.headers.add(plain(name), plain(value)); }
  void on_header_impl(error_code&) override { request.keep_alive = keep_alive(); }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(View, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, View, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}
};

RequestParser::RequestParser(const HeadLimits& limits) : syntax_(limits) {}
RequestParser::~RequestParser() = default;

Request& RequestParser::request() { return framing_->request; }
void RequestParser::limit_body(std::uint64_t max_bytes) {
  max_body_bytes_ = max_bytes;
  if (const auto length = content_length(); length && *length > max_bytes) failure_ = {413, "the request's body is too large"};
}
std::optional<std::uint64_t> RequestParser::content_length() const {
  const auto length = framing_->content_length();
  return length ? std::optional(*length) : std::nullopt;
}

std::size_t RequestParser::parse(std::string_view input) {
  if (failure_ || done_ || input.empty()) return 0;
  if (head_done_) return parse_body(input);
  return parse_head(input);
}

std::size_t RequestParser::parse_head(std::string_view input) {
  // RFC 9112 2.2: one empty line before the request is forgiven.
  std::size_t skipped = 0;
  if (!started_ && !skipped_line_ && input.front() == '\r') {
    if (input.size() < 2) return 0;
    if (input[1] == '\n') {
      skipped_line_ = true;
      input.remove_prefix(skipped = 2);
      if (input.empty()) return skipped;
    }
  }
  started_ = true;
  switch (syntax_.check(input)) {
    case HeadSyntax::State::kNeedMore: return skipped;
    case HeadSyntax::State::kFailed: failure_ = syntax_.failure(); return skipped;
    case HeadSyntax::State::kComplete: break;
  }
  framing_ = std::make_unique<Framing>();
  error_code error;
  const std::size_t used = framing_->put(boost::asio::buffer(input.data(), syntax_.head_bytes()), error);
  if (error || used != syntax_.head_bytes()) {
    failure_ = {400, "the request's head is malformed"};
    return skipped;
  }
  head_done_ = true;
  if (framing_->chunked()) chunks_.emplace();
  body_left_ = content_length().value_or(0);
  done_ = !chunks_ && body_left_ == 0;
  return skipped + used;
}

std::size_t RequestParser::parse_body(std::string_view input) {
  std::string& body = request().body;
  if (chunks_) {
    const std::size_t used = chunks_->parse(input, max_body_bytes_, body);
    failure_ = chunks_->failure();
    done_ = chunks_->done();
    return used;
  }
  const auto used = static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, input.size()));
  body.append(input.substr(0, used));
  body_left_ -= used;
  done_ = body_left_ == 0;
  return used;
}

}  // namespace weir::http
