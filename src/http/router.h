// SPDX-License-Identifier: Apache-2.0
// The caller's table of routes. A pattern's {name} takes one segment of the path, {name*} at the end takes the rest with its
// slashes; literal segments win over parameters, whatever their order in the table.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/message.h"
#include "http/responder.h"

namespace weir::http {

struct Route {
  std::string method;   // "GET" serves HEAD too
  std::string pattern;  // "/v1/models/{id*}"
  // Runs on an io thread: it must not block; it may keep the responder and answer later. An exception is answered with 500.
  std::function<void(Request, Responder)> handler{};
  std::size_t max_body_bytes = 0;  // of a request; more is 413
  Duration deadline{};             // from the first byte; zero: none, until set_deadline
  // Looks at the head before any of the body is read (and before 100 Continue): an answer here refuses the request.
  std::function<std::optional<Response>(const Request&)> precheck{};
};

class Router {
 public:
  static Result<Router> make(std::vector<Route> routes);

  struct Match {
    const Route* route = nullptr;  // null: see allow and bad_path
    bool bad_path = false;         // a broken escape: 400
    std::string allow;             // methods this path has; empty: there is no such path
    std::vector<std::pair<std::string_view, std::string>> parameters;
  };
  Match match(std::string_view method, std::string_view path) const;  // the path as sent, percent-encoded
  std::string all_methods() const;                                    // for OPTIONS *

 private:
  struct Segment {
    std::string text;  // the literal, or the parameter's name
    enum class Kind { kLiteral, kParameter, kRest } kind = Kind::kLiteral;
  };
  struct Entry {
    std::vector<Segment> segments;
    std::size_t route = 0;
  };
  static Result<std::vector<Segment>> parse_pattern(const std::string& pattern);
  static bool fits(const Entry& entry, const std::vector<std::string>& path);
  static bool same_paths(const Entry& a, const Entry& b);

  std::vector<Route> routes_;
  std::vector<Entry> entries_;  // the more literal first
};

}  // namespace weir::http
