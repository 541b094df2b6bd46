// SPDX-License-Identifier: Apache-2.0
// http and https URLs taken apart.
#pragma once

#include <string>

#include "base/result.h"

namespace weir::http {

struct Url {
  bool tls = false;
  std::string host;  // without the brackets of an IPv6 address
  std::string port;
  std::string authority;  // as the Host header wants it
  std::string target;     // path and query, at least "/"
};

Result<Url> parse_url(const std::string& text);
// As people type addresses: without a scheme it is http.
Result<Url> parse_typed_url(const std::string& text);
// Scheme and authority, "https://host:port"; the target may follow.
std::string origin_of(const Url& url);

}  // namespace weir::http
