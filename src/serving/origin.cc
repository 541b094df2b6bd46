// SPDX-License-Identifier: Apache-2.0
#include "serving/origin.h"

#include <algorithm>

namespace weir::serving {

bool origin_may_send(std::string_view origin, std::span<const std::string> allowed) {
  if (origin.empty()) return true;
  if (std::ranges::any_of(allowed, [&](const std::string& one) { return one == "*" || one == origin; })) return true;
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return false;  // "null": a sandboxed frame, or a file
  std::string_view host = origin.substr(scheme + 3);
  if (host.starts_with('[')) {
    const std::size_t end = std::min(host.find(']'), host.size() - 1);
    const std::string_view behind = host.substr(end + 1);
    if (!behind.empty() && !behind.starts_with(':')) return false;
    host = host.substr(0, end + 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

}  // namespace weir::serving
