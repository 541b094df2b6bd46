// SPDX-License-Identifier: Apache-2.0
#include "http/request_parser.h"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace weir::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using View = beast::string_view;

// Beast 1.81 asserts (and so would abort) when it is asked twice about a first and last chunk of less than these bytes. Where a chunk's
// size is due, at least "0\r\n\r\n" is still to come, so waiting for as much delays nothing.
constexpr std::size_t kLastChunkBytes = 5;
constexpr std::size_t kMaxChunkHead = 4096;  // a chunk's size line, or all trailers together

std::string_view plain(View text) { return {text.data(), text.size()}; }

bool has_control_characters(View text) {
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) return true;
  }
  return false;
}

}  // namespace

class RequestParser::Framing final : public beast::http::basic_parser<true> {
 public:
  Framing() {
    eager(true);
    body_limit(0);
    header_limit(0xffffffffu);  // HeadSyntax has looked already
  }
  Request request;
  bool in_trailers = false;
  std::uint64_t chunk_left = 0;  // zero: a chunk's size is due

 private:
  void on_request_impl(beast::http::verb, View method, View target, int version, error_code&) override {
    request.method = plain(method);
    request.target = plain(target);
    const std::size_t question = std::min(request.target.find('?'), request.target.size());
    request.path = request.target.substr(0, question);
    if (question < request.target.size()) request.query = request.target.substr(question + 1);
    request.minor_version = version % 10;
  }
  void on_response_impl(int, View, int, error_code&) override {}
  void on_field_impl(beast::http::field, View name, View value, error_code&) override {
    if (!in_trailers) request.headers.add(plain(name), plain(value));  // trailers are read and dropped: nobody may smuggle headers in them
  }
  void on_header_impl(error_code&) override {
    in_trailers = true;
    request.keep_alive = keep_alive();
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(View bytes, error_code&) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t size, View extension, error_code& error) override {
    chunk_left = size;
    if (has_control_characters(extension)) error = beast::http::error::bad_chunk_extension;
  }
  std::size_t on_chunk_body_impl(std::uint64_t, View bytes, error_code&) override {
    chunk_left -= bytes.size();
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(error_code&) override {}
};

RequestParser::RequestParser(const HeadLimits& limits) : syntax_(limits) {}
RequestParser::~RequestParser() = default;

Request& RequestParser::request() { return framing_->request; }
void RequestParser::limit_body(std::uint64_t max_bytes) {
  framing_->body_limit(max_bytes);
  if (const auto length = content_length(); length && *length > max_bytes) failure_ = {413, "the request's body is too large"};
}
bool RequestParser::expects_body() const { return !framing_->is_done(); }
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
  framing_->body_limit(boost::none);
  framing_->eager(false);
  error_code error;
  const std::size_t used = framing_->put(boost::asio::buffer(input.data(), syntax_.head_bytes()), error);
  if (error || used != syntax_.head_bytes()) {
    failure_ = {400, "the request's head is malformed"};
    return skipped;
  }
  framing_->eager(true);
  head_done_ = true;
  done_ = framing_->is_done();
  return skipped + used;
}

std::size_t RequestParser::parse_body(std::string_view input) {
  if (framing_->chunked() && framing_->chunk_left == 0 && input.size() < kLastChunkBytes) return 0;
  error_code error;
  const std::size_t used = framing_->put(boost::asio::buffer(input.data(), input.size()), error);
  done_ = framing_->is_done();
  if (error == beast::http::error::need_more) {
    if (input.size() - used > kMaxChunkHead) failure_ = {400, "a chunk's header is too long"};
  } else if (error == beast::http::error::body_limit) {
    failure_ = {413, "the request's body is too large"};
  } else if (error) {
    failure_ = {400, "the request's chunked body is malformed"};
  }
  return used;
}

}  // namespace weir::http
