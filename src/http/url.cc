// SPDX-License-Identifier: Apache-2.0
#include "http/url.h"

#include <algorithm>

namespace weir::http {

Result<Url> parse_url(const std::string& text) {
  const auto refuse = [&](const char* why) { return fail(ErrorCode::kInvalidArgument, "the URL {} {}", text, why); };
  Url url;
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    url.tls = true;
  } else if (!rest.starts_with("http://")) {
    return refuse("does not begin with http:// or https://");
  }
  rest.remove_prefix(url.tls ? 8 : 7);
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; })) {
    return refuse("has spaces or control characters");
  }
  const std::size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  rest.remove_prefix(slash);
  rest = rest.substr(0, rest.find('#'));
  if (authority.find('@') != std::string_view::npos) return refuse("has a user name; send credentials in a header");
  std::size_t port_at = authority.rfind(':');
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse("has a broken IPv6 address");
    url.host = authority.substr(1, end - 1);
    port_at = end + 1 < authority.size() ? end + 1 : std::string_view::npos;
    if (port_at != std::string_view::npos && authority[port_at] != ':') return refuse("has a broken IPv6 address");
  } else {
    url.host = authority.substr(0, port_at);
  }
  url.port = port_at == std::string_view::npos ? (url.tls ? "443" : "80") : authority.substr(port_at + 1);
  const bool digits = !url.port.empty() && std::all_of(url.port.begin(), url.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (url.host.empty()) return refuse("has no host");
  if (!digits || url.port.size() > 5 || std::stoi(url.port) > 65535) return refuse("has a broken port");
  url.authority = authority;
  url.target = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
  return url;
}

Result<Url> parse_typed_url(const std::string& text) { return parse_url(text.find("://") == std::string::npos ? "http://" + text : text); }

std::string origin_of(const Url& url) { return (url.tls ? "https://" : "http://") + url.authority; }

}  // namespace weir::http
