// SPDX-License-Identifier: Apache-2.0
// Socket addresses from and to text: "127.0.0.1:80", "[::1]:80", "unix:/path".
#pragma once

#include <string>

#include "base/result.h"
#include "http/stream.h"

namespace weir::http {

// Literal addresses only, and "localhost" (127.0.0.1).
Result<SocketAddress> parse_socket_address(const std::string& text);
std::string format_socket_address(const SocketAddress& address);  // a client's unix socket has no path: "unix"

}  // namespace weir::http
