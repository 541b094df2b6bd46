// SPDX-License-Identifier: Apache-2.0
// For tls.cc and stream.cc: what a TlsContext holds.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include "http/net.h"
#include "http/tls.h"

namespace weir::http {

struct TlsContext::Native {
  asio::ssl::context context;
  bool verify_host = false;
};

}  // namespace weir::http
