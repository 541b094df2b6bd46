// SPDX-License-Identifier: Apache-2.0
// One GET over http(s), with redirects followed by our own rules: at most ten, to http(s) only, never from https down to
// http, and the token goes to the origin of the first URL alone. libcurl does the transport.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/url.h"

namespace weir::store {

struct HttpTimeouts {
  std::chrono::milliseconds connect{20'000};
  std::chrono::milliseconds stall{30'000};  // without a single byte
};

struct HttpRequest {
  Url url;
  std::string token;  // bearer token, or empty
  bool allow_http = false;
  std::vector<std::string> headers;  // "Name: value"
  HttpTimeouts timeouts;
  std::function<bool()> should_stop;  // asked at least once a second
};

struct ContentRange {
  std::optional<std::uint64_t> first;  // absent in a 416's "bytes */total"
  std::optional<std::uint64_t> total;
};

struct ResponseHead {
  int status = 0;
  std::optional<std::uint64_t> content_length;
  std::optional<ContentRange> content_range;
  bool framed = false;  // the end of the body can be told from a broken connection
  std::string etag;
  std::optional<std::chrono::seconds> retry_after;
  std::string reason;  // an X-Error-Message, made printable
  // What Hugging Face says of a file on the way to it (X-Linked-Etag, X-Linked-Size); from the first origin only.
  std::string linked_sha256;
  std::optional<std::uint64_t> linked_size;
};

struct HttpHandlers {
  std::function<Status(const ResponseHead&)> on_head;         // of a 200 or 206, before its body
  std::function<Status(std::span<const std::byte>)> on_body;  // of a 200 or 206
};

struct HttpOutcome {
  ResponseHead head;           // of the last response; status 0 = none came
  std::optional<Error> error;  // none: the whole response was received, whatever its status
  bool retriable = false;      // the error may pass
};

HttpOutcome http_get(const HttpRequest& request, const HttpHandlers& handlers);

// Parses one header line into the head. For tests and fuzzing; http_get uses it.
void read_header_line(std::string_view line, ResponseHead& head);

}  // namespace weir::store
