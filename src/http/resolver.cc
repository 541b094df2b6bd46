// SPDX-License-Identifier: Apache-2.0
#include "http/resolver.h"

#include <boost/asio/ip/tcp.hpp>
#include <cstring>

#include "http/net.h"
#include "http/socket_address.h"

namespace weir::http {
namespace {

constexpr Duration kKeep = std::chrono::seconds(10);
constexpr std::size_t kMaxKept = 1024;

}  // namespace

struct Resolver::Native {
  using Tcp = asio::ip::tcp;
  explicit Native(Loop& loop) : resolver(loop.context().io) {}
  asio::ip::basic_resolver<Tcp, asio::io_context::executor_type> resolver;
};

Resolver::Resolver(Loop& loop) : native_(std::make_unique<Native>(loop)) {}
Resolver::~Resolver() = default;

void Resolver::resolve(const std::string& host, const std::string& port, OnResolved on_resolved) {
  const bool v6 = host.find(':') != std::string::npos;
  if (auto literal = parse_socket_address((v6 ? "[" + host + "]" : host) + ":" + port); literal && host != "localhost") {
    return on_resolved(std::vector{*literal});
  }
  const std::string key = host + ":" + port;
  const TimePoint now = steady_clock().now();
  if (const auto found = kept_.find(key); found != kept_.end() && found->second.until > now) return on_resolved(found->second.addresses);
  native_->resolver.async_resolve(host, port, [this, key, on_resolved = std::move(on_resolved)](error_code error, const auto& results) {
    if (error == asio::error::operation_aborted) return;  // the client ends
    if (error) {
      on_resolved(fail(ErrorCode::kNetwork, "resolving {}: {}", key, error.message()));
      return;
    }
    std::vector<SocketAddress> addresses;
    for (const auto& result : results) {
      SocketAddress address;
      const auto endpoint = result.endpoint();
      address.size = static_cast<socklen_t>(endpoint.size());
      std::memcpy(&address.storage, endpoint.data(), endpoint.size());
      addresses.push_back(address);
    }
    if (kept_.size() >= kMaxKept) kept_.clear();
    kept_[key] = {addresses, steady_clock().now() + kKeep};
    on_resolved(addresses);
  });
}

}  // namespace weir::http
