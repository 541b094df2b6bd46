// SPDX-License-Identifier: Apache-2.0
#include "http/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstring>

namespace weir::http {
namespace {

template <class T>
SocketAddress wrap(const T& native, std::size_t size = sizeof(T)) {
  SocketAddress address;
  std::memcpy(&address.storage, &native, sizeof(T));
  address.size = static_cast<socklen_t>(size);
  return address;
}

Result<SocketAddress> parse_unix(const std::string& path) {
  sockaddr_un native{};
  native.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(native.sun_path)) {
    return fail(ErrorCode::kInvalidArgument, "unix:{}: the path must have 1 to {} bytes", path, sizeof(native.sun_path) - 1);
  }
  std::memcpy(native.sun_path, path.c_str(), path.size() + 1);
  return wrap(native, offsetof(sockaddr_un, sun_path) + path.size() + 1);
}

}  // namespace

Result<SocketAddress> parse_socket_address(const std::string& text) {
  if (text.starts_with("unix:")) return parse_unix(text.substr(5));
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  unsigned port = 65536;
  if (colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error != std::errc() || stop != end) port = 65536;
  }
  if (port > 65535) return fail(ErrorCode::kInvalidArgument, "{}: an address is HOST:PORT, [IPv6]:PORT or unix:PATH", text);
  if (host == "localhost") host = "127.0.0.1";
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) return wrap(v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']' &&
      ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) == 1) {
    return wrap(v6);
  }
  return fail(ErrorCode::kInvalidArgument, "{}: not an address; write 127.0.0.1:PORT, 0.0.0.0:PORT, [::1]:PORT or unix:PATH", text);
}

std::string format_socket_address(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof(v4));
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return fmt::format("{}:{}", text, ntohs(v4.sin_port));
  }
  if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.storage, sizeof(v6));
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    return fmt::format("[{}]:{}", text, ntohs(v6.sin6_port));
  }
  sockaddr_un native{};
  std::memcpy(&native, &address.storage, sizeof(native));
  if (address.size <= offsetof(sockaddr_un, sun_path) || native.sun_path[0] == '\0') return "unix";
  return fmt::format("unix:{}", std::string(native.sun_path, ::strnlen(native.sun_path, sizeof(native.sun_path))));
}

}  // namespace weir::http
