// SPDX-License-Identifier: Apache-2.0
#include "http/head_syntax.h"

#include <algorithm>

#include "http/message.h"

namespace weir::http {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }
bool is_token_char(char c) { return is_alphanumeric(c) || is_one_of(c, "!#$%&'*+-.^_`|~"); }

// RFC 3986: path and query, every '%' with its two digits.
bool is_target(std::string_view target) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    const char c = target[i];
    if (c == '%') {
      if (i + 2 >= target.size() || !is_hex(target[i + 1]) || !is_hex(target[i + 2])) return false;
    } else if (!is_alphanumeric(c) && !is_one_of(c, "-._~!$&'()*+,;=:@/?")) {
      return false;
    }
  }
  return true;
}

bool is_port(std::string_view text) {
  return text.empty() || (text.front() == ':' && text.size() <= 6 && std::all_of(text.begin() + 1, text.end(), is_digit));
}

// uri-host [":" port]; empty is what a client sends that has no name for us (a unix socket).
bool is_host(std::string_view host) {
  if (host.empty()) return true;
  if (host.front() == '[') {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos || end < 3) return false;
    const std::string_view address = host.substr(1, end - 1);
    return std::all_of(address.begin(), address.end(), [](char c) { return is_hex(c) || c == ':' || c == '.'; }) &&
           is_port(host.substr(end + 1));
  }
  const std::size_t colon = std::min(host.find(':'), host.size());
  const std::string_view name = host.substr(0, colon);
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_alphanumeric(c) || is_one_of(c, "-._~!$&'()*+;="); }) &&
         is_port(host.substr(colon));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

constexpr std::size_t kRequestLineOverhead = 64;  // the method, two spaces and the version beside the target

}  // namespace

bool is_token(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char); }

std::optional<std::size_t> absolute_path_start(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
    const std::string_view host = target.substr(scheme.size(), end - scheme.size());
    if (!host.empty() && is_host(host)) return end;
  }
  return std::nullopt;
}

HeadSyntax::State HeadSyntax::fail(int status, std::string_view message) {
  failure_ = {status, message};
  return State::kFailed;
}

HeadSyntax::State HeadSyntax::check(std::string_view input) {
  while (true) {
    const std::size_t end = input.find('\n', searched_);
    if (end == std::string_view::npos) return check_partial_line(input);
    if (end >= limits_.max_head_bytes) return fail(431, "the request's headers are too large");
    searched_ = end + 1;
    if (end == line_start_ || input[end - 1] != '\r') return fail(400, "a line of the request's head does not end with CR LF");
    const std::string_view line = input.substr(line_start_, end - 1 - line_start_);
    line_start_ = end + 1;
    if (line.empty() && lines_ > 0) return check_whole() ? State::kComplete : State::kFailed;
    if (!check_line(line)) return State::kFailed;
    ++lines_;
  }
}

HeadSyntax::State HeadSyntax::check_partial_line(std::string_view input) {
  searched_ = input.size();
  if (lines_ == 0 && input.size() > limits_.max_target_bytes + kRequestLineOverhead) return fail(414, "the request's target is too long");
  if (input.size() >= limits_.max_head_bytes) return fail(431, "the request's headers are too large");
  // Whatever speaks another protocol (TLS, say) is told at once instead of at the timeout.
  if (lines_ == 0 && !input.empty() && !is_token_char(input.front())) return fail(400, "this is not an HTTP/1.1 request");
  return State::kNeedMore;
}

bool HeadSyntax::check_line(std::string_view line) {
  if (lines_ == 0) return check_request_line(line);
  if (lines_ > limits_.max_lines) {
    fail(431, "the request has too many header lines");
    return false;
  }
  return check_field(line);
}

bool HeadSyntax::check_request_line(std::string_view line) {
  const auto refuse = [&](std::string_view message, int status = 400) {
    fail(status, message);
    return false;
  };
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return refuse("the request line is malformed");
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method) || method.size() > 32) return refuse("the request's method is malformed");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refuse("the request's version is not HTTP/1.1 or HTTP/1.0");
  http_1_0_ = version == "HTTP/1.0";
  if (target.size() > limits_.max_target_bytes) return refuse("the request's target is too long", 414);
  if (target == "*" && method == "OPTIONS") return true;
  const std::string_view path = target.substr(absolute_path_start(target).value_or(0));
  if (target.empty() || (!path.empty() && path.front() != '/' && path.front() != '?') ||
      (path.size() == target.size() && path.front() != '/') || !is_target(path))
    return refuse("the request's target is malformed");
  return true;
}

bool HeadSyntax::check_field(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') {
    fail(400, "folded header lines are not accepted");
    return false;
  }
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !is_token(name)) {
    fail(400, "a header's name is malformed");
    return false;
  }
  const std::string_view value = trim(line.substr(colon + 1));
  if (has_control_characters(value)) {
    fail(400, "a header's value has control characters");
    return false;
  }
  return check_special_field(name, value);
}

bool HeadSyntax::check_special_field(std::string_view name, std::string_view value) {
  std::string_view problem;
  if (equal_ignoring_case(name, "Host")) {
    if (++hosts_ > 1) problem = "the request has more than one Host";
    if (!is_host(value)) problem = "the request's Host is malformed";
  } else if (equal_ignoring_case(name, "Content-Length")) {
    if (++lengths_ > 1) problem = "the request has more than one Content-Length";
    if (value.empty() || value.size() > 18 || !std::all_of(value.begin(), value.end(), is_digit)) {
      problem = "the request's Content-Length is malformed";
    }
  } else if (equal_ignoring_case(name, "Transfer-Encoding")) {
    if (++encodings_ > 1) problem = "the request has more than one Transfer-Encoding";
    if (!equal_ignoring_case(value, "chunked")) problem = "the only Transfer-Encoding accepted is chunked";
  }
  if (problem.empty()) return true;
  fail(400, problem);
  return false;
}

bool HeadSyntax::check_whole() {
  std::string_view problem;
  if (hosts_ == 0 && !http_1_0_) problem = "the request has no Host";
  if (lengths_ > 0 && encodings_ > 0) problem = "the request has both Content-Length and Transfer-Encoding";
  if (encodings_ > 0 && http_1_0_) problem = "HTTP/1.0 knows no Transfer-Encoding";
  if (problem.empty()) return true;
  fail(400, problem);
  return false;
}

}  // namespace weir::http
