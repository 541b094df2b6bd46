// SPDX-License-Identifier: Apache-2.0
#include "http/router.h"

#include <algorithm>
#include <set>

#include "http/head_syntax.h"

namespace weir::http {
namespace {

std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> pieces;
  path.remove_prefix(1);
  while (true) {
    const std::size_t end = path.find('/');
    pieces.push_back(path.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    path.remove_prefix(end + 1);
  }
}

void append_method(std::string& list, std::string_view method) {
  if (!list.empty()) list += ", ";
  list += method;
}

std::string allow_list(const std::set<std::string>& methods) {
  std::string list;
  for (const std::string& method : methods) {
    append_method(list, method);
    if (method == "GET" && !methods.contains("HEAD")) append_method(list, "HEAD");
  }
  if (!methods.contains("OPTIONS")) append_method(list, "OPTIONS");
  return list;
}

}  // namespace

Result<std::vector<Router::Segment>> Router::parse_pattern(const std::string& pattern) {
  if (pattern.empty() || pattern.front() != '/') return fail(ErrorCode::kInvalidArgument, "route {}: a pattern begins with /", pattern);
  std::vector<Segment> segments;
  for (std::string_view piece : split_path(pattern)) {
    if (!segments.empty() && segments.back().kind == Segment::Kind::kRest) {
      return fail(ErrorCode::kInvalidArgument, "route {}: nothing can follow a parameter that takes the rest", pattern);
    }
    Segment segment{std::string(piece)};
    if (piece.size() >= 3 && piece.front() == '{' && piece.back() == '}') {
      piece = piece.substr(1, piece.size() - 2);
      segment.kind = Segment::Kind::kParameter;
      if (piece.size() > 1 && piece.back() == '*') {
        piece.remove_suffix(1);
        segment.kind = Segment::Kind::kRest;
      }
      segment.text = piece;
    }
    if (segment.text.find_first_of("{}*") != std::string::npos) {
      return fail(ErrorCode::kInvalidArgument, "route {}: a parameter is a whole segment, {{name}} or {{name*}}", pattern);
    }
    segments.push_back(std::move(segment));
  }
  return segments;
}

bool Router::same_paths(const Entry& a, const Entry& b) {
  return std::equal(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(), [](const Segment& x, const Segment& y) {
    return x.kind == y.kind && (x.kind != Segment::Kind::kLiteral || x.text == y.text);
  });
}

Result<Router> Router::make(std::vector<Route> routes) {
  Router router;
  router.routes_ = std::move(routes);
  for (std::size_t i = 0; i < router.routes_.size(); ++i) {
    const Route& route = router.routes_[i];
    if (!is_token(route.method)) return fail(ErrorCode::kInvalidArgument, "route {}: {} is no method", route.pattern, route.method);
    if (!route.handler) return fail(ErrorCode::kInvalidArgument, "route {} {} has no handler", route.method, route.pattern);
    WEIR_ASSIGN(auto segments, parse_pattern(route.pattern));
    const Entry entry{std::move(segments), i};
    for (const Entry& other : router.entries_) {
      if (router.routes_[other.route].method == route.method && same_paths(entry, other)) {
        return fail(ErrorCode::kInvalidArgument, "two routes for {} {}", route.method, route.pattern);
      }
    }
    router.entries_.push_back(entry);
  }
  std::stable_sort(router.entries_.begin(), router.entries_.end(), [](const Entry& a, const Entry& b) {
    return std::lexicographical_compare(a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
                                        [](const Segment& x, const Segment& y) { return x.kind < y.kind; });
  });
  return router;
}

bool Router::fits(const Entry& entry, const std::vector<std::string>& path) {
  const bool rest = entry.segments.back().kind == Segment::Kind::kRest;
  if (rest ? path.size() < entry.segments.size() : path.size() != entry.segments.size()) return false;
  for (std::size_t i = 0; i < entry.segments.size(); ++i) {
    const Segment& segment = entry.segments[i];
    if (segment.kind == Segment::Kind::kLiteral ? segment.text != path[i] : path[i].empty()) return false;
  }
  return true;
}

Router::Match Router::match(std::string_view method, std::string_view path) const {
  Match match;
  if (path.empty() || path.front() != '/') return match;
  std::vector<std::string> pieces;
  for (const std::string_view piece : split_path(path)) {
    auto decoded = percent_decode(piece);
    if (!decoded) {
      match.bad_path = true;
      return match;
    }
    pieces.push_back(std::move(*decoded));
  }
  const Entry* found = nullptr;
  std::set<std::string> methods;
  for (const Entry& entry : entries_) {
    if (!fits(entry, pieces)) continue;
    const std::string& has = routes_[entry.route].method;
    methods.insert(has);
    const bool serves = has == method || (has == "GET" && method == "HEAD");
    if (serves && (!found || (has == method && same_paths(*found, entry)))) found = &entry;
  }
  if (!methods.empty()) match.allow = allow_list(methods);
  if (!found) return match;
  match.route = &routes_[found->route];
  for (std::size_t i = 0; i < found->segments.size(); ++i) {
    const Segment& segment = found->segments[i];
    if (segment.kind == Segment::Kind::kLiteral) continue;
    std::string value = std::move(pieces[i]);
    for (std::size_t j = i + 1; segment.kind == Segment::Kind::kRest && j < pieces.size(); ++j) value += '/' + pieces[j];
    match.parameters.emplace_back(segment.text, std::move(value));
  }
  return match;
}

std::string Router::all_methods() const {
  std::set<std::string> methods;
  for (const Route& route : routes_) methods.insert(route.method);
  return allow_list(methods);
}

}  // namespace weir::http
