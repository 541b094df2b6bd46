// SPDX-License-Identifier: Apache-2.0
// Requests and responses as plain structs: what handlers see and give back. Nothing here knows sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace weir::http {

// ASCII only, as HTTP compares names and tokens.
bool equal_ignoring_case(std::string_view a, std::string_view b);

// Header lines in their order; names compare without case.
class Headers {
 public:
  using Line = std::pair<std::string, std::string>;

  void add(std::string_view name, std::string_view value) { lines_.emplace_back(name, value); }
  void set(std::string_view name, std::string_view value);  // replaces all lines of that name
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::string_view get(std::string_view name) const;  // the first line's value, or empty
  const std::string* find(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  // Whether a comma separated list (Connection, Transfer-Encoding, …) holds the token, in any line of that name.
  bool has_token(std::string_view name, std::string_view token) const;
  bool empty() const { return lines_.empty(); }
  auto begin() const { return lines_.begin(); }
  auto end() const { return lines_.end(); }

 private:
  std::vector<Line> lines_;
};

struct Request {
  std::string method;
  std::string target;  // as sent: "/v1/models/a%2Fb?x=1"
  std::string path;    // the target before '?', still percent-encoded
  std::string query;   // behind '?', still percent-encoded
  int minor_version = 1;
  bool keep_alive = true;
  Headers headers;
  std::string body;

  std::string_view route;  // the pattern of the matching route ("/v1/models/{id}"), empty while there is none; lives as long as the server
  std::vector<std::pair<std::string_view, std::string>> parameters;  // of the pattern, percent-decoded

  std::uint64_t id = 0;            // counts the requests of this server, for logs
  std::string peer;                // "127.0.0.1:4711", "[::1]:4711" or "unix"
  std::string client_certificate;  // subject of the verified client certificate, empty without one
  TimePoint received{};            // when its first byte was there

  std::string_view header(std::string_view name) const { return headers.get(name); }
  std::string_view parameter(std::string_view name) const;                  // empty when the pattern has none of that name
  std::optional<std::string> query_parameter(std::string_view name) const;  // decoded, '+' is a space; the first of that name
};

struct Response {
  int status = 200;
  Headers headers;  // Content-Length, Connection, Date and Transfer-Encoding are the server's
  std::string body;

  static Response text(int status, std::string body);
  static Response json(int status, std::string body);
};

std::string_view reason_phrase(int status);

// Undoes %XX. Nothing for a broken escape or %00.
std::optional<std::string> percent_decode(std::string_view text);

// A header value that cannot end its line: control characters become spaces.
std::string header_safe(std::string_view value);

}  // namespace weir::http
