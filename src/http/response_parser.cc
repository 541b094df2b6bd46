// SPDX-License-Identifier: Apache-2.0
#include "http/response_parser.h"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace weir::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using View = beast::string_view;

constexpr std::uint32_t kMaxHeadBytes = 64u << 10;
constexpr std::size_t kLastChunkBytes = 5;      // as in request_parser.cc
constexpr std::size_t kMaxPending = 64u << 10;  // an unfinished head, chunk size line or trailers

std::string_view plain(View text) { return {text.data(), text.size()}; }

}  // namespace

class ResponseParser::Framing final : public beast::http::basic_parser<false> {
 public:
  Framing() {
    eager(true);
    header_limit(kMaxHeadBytes);
    body_limit(boost::none);  // the caller counts
  }
  int status = 0;
  Headers headers;
  std::string* body = nullptr;
  bool in_trailers = false;
  std::uint64_t chunk_left = 0;  // zero: a chunk's size is due

 private:
  void on_request_impl(beast::http::verb, View, View, int, error_code&) override {}
  void on_response_impl(int code, View, int, error_code& error) override {
    status = code;
    if (code < 100 || code == 101) error = beast::http::error::bad_status;
  }
  void on_field_impl(beast::http::field, View name, View value, error_code&) override {
    if (!in_trailers) headers.add(plain(name), plain(value));
  }
  void on_header_impl(error_code&) override { in_trailers = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(View bytes, error_code&) override {
    body->append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t size, View, error_code&) override { chunk_left = size; }
  std::size_t on_chunk_body_impl(std::uint64_t, View bytes, error_code&) override {
    chunk_left -= bytes.size();
    body->append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(error_code&) override {}
};

ResponseParser::ResponseParser(bool head_only) : head_only_(head_only) { reset(); }
ResponseParser::~ResponseParser() = default;

void ResponseParser::reset() {
  framing_ = std::make_unique<Framing>();
  if (head_only_) framing_->skip(true);
}

int ResponseParser::status() const { return framing_->status; }
Headers& ResponseParser::headers() { return framing_->headers; }
bool ResponseParser::keep_alive() const { return done_ && framing_->keep_alive(); }

std::size_t ResponseParser::parse(std::string_view input, std::string& body) {
  std::size_t used = 0;
  while (!done_ && failure_.empty() && used < input.size()) {
    if (framing_->is_header_done() && framing_->chunked() && framing_->chunk_left == 0 && input.size() - used < kLastChunkBytes) break;
    framing_->body = &body;
    error_code error;
    const std::size_t now = framing_->put(boost::asio::buffer(input.data() + used, input.size() - used), error);
    used += now;
    if (error && error != beast::http::error::need_more) {
      failure_ = "the response is malformed: " + error.message();
      return used;
    }
    if (framing_->is_header_done() && framing_->status < 200) {  // interim: the real one follows
      reset();
      continue;
    }
    head_done_ = framing_->is_header_done();
    done_ = framing_->is_done();
    if (now == 0 || error) break;
  }
  if (!done_ && input.size() - used > kMaxPending) failure_ = "the response has a head or chunk line that is too long";
  return used;
}

void ResponseParser::end() {
  if (done_ || !failure_.empty()) return;
  error_code error;
  if (framing_->got_some()) framing_->put_eof(error);
  done_ = framing_->got_some() && !error;
  if (!done_) failure_ = "the connection ended before the response did";
}

}  // namespace weir::http
