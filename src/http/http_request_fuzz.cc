// SPDX-License-Identifier: Apache-2.0
// Any bytes as requests and responses, whole and in pieces: both ways give the same, nothing is read twice or beyond its end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "http/request_parser.h"
#include "http/response_parser.h"
#include "http/router.h"

namespace {

using namespace weir::http;

struct Outcome {
  bool done = false;
  int status = 0;
  std::size_t used = 0;
  std::string target, body;
  std::size_t headers = 0;
  bool operator==(const Outcome&) const = default;
};

void describe(RequestParser& parser, Outcome& outcome) {
  outcome.done = parser.done();
  outcome.status = parser.failure() ? parser.failure()->status : 0;
  if (!parser.head_done()) return;
  const Request& request = parser.request();
  outcome.target = request.target;
  if (parser.done()) outcome.body = request.body;
  for (const auto& line : request.headers) {
    WEIR_CHECK(is_token(line.first) && line.second.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    ++outcome.headers;
  }
  WEIR_CHECK(request.headers.count("Content-Length") <= 1 && request.headers.count("Host") <= 1);
  WEIR_CHECK(!request.headers.has("Content-Length") || !request.headers.has("Transfer-Encoding"));
}

Outcome read_request(std::string_view bytes, std::size_t step) {
  RequestParser parser({.max_head_bytes = 4096, .max_target_bytes = 512, .max_lines = 32});
  Outcome outcome;
  std::size_t shown = 0;
  while (!parser.done() && !parser.failure()) {
    const bool before = parser.head_done();
    const std::size_t used = parser.parse(bytes.substr(outcome.used, shown - outcome.used));
    outcome.used += used;
    WEIR_CHECK(outcome.used <= shown);
    if (!before && parser.head_done() && !parser.failure()) parser.limit_body(2000);
    if (used > 0) continue;
    if (shown == bytes.size()) break;
    shown = std::min(bytes.size(), shown + step);
  }
  describe(parser, outcome);
  return outcome;
}

void read_response(std::string_view bytes, std::size_t step, bool head_only) {
  ResponseParser parser(head_only);
  std::string body;
  std::size_t used = 0, shown = 0;
  while (!parser.done() && parser.failure().empty() && shown < bytes.size()) {
    shown = std::min(bytes.size(), shown + step);
    used += parser.parse(bytes.substr(used, shown - used), body);
    WEIR_CHECK(used <= shown);
  }
  parser.end();
  WEIR_CHECK(parser.done() != !parser.failure().empty());
  WEIR_CHECK(body.size() <= bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Outcome whole = read_request(bytes, size + 1);
  for (const std::size_t step : {1, 2, 7}) {
    const Outcome pieces = read_request(bytes, step);
    // Limits on unfinished parts look at what lies there, so only what is accepted has to be the same.
    if (size <= 4096 && whole.done && whole.status == 0) WEIR_CHECK(pieces == whole);
    WEIR_CHECK(whole.done || !pieces.done || pieces.status != 0 || whole.status != 0);
  }
  for (const std::size_t step : {std::size_t{1}, size + 1}) {
    read_response(bytes, step, false);
    read_response(bytes, step, true);
  }
  return 0;
}
