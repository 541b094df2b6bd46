// SPDX-License-Identifier: Apache-2.0
// The client's connections: which one carries a request, which are kept for the next.
#include "http/client.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <unordered_map>

#include "http/client_connection.h"
#include "http/head_syntax.h"
#include "http/resolver.h"
#include "http/socket_address.h"

namespace weir::http {

class Client::Impl final : public ClientConnectionOwner {
 public:
  Impl(ClientOptions options, std::shared_ptr<TlsContext> tls)
      : options_(std::move(options)),
        tls_(std::move(tls)),
        loop_("weir-client", options_.on_thread_start),
        resolver_(std::make_unique<Resolver>(loop_)) {}

  ~Impl() override {
    loop_.run([this] { end_all(); });
    loop_.stop();
  }

  std::shared_ptr<ClientExchange> start(ClientRequest request, ClientHandlers handlers) {
    auto exchange = std::make_shared<ClientExchange>();
    exchange->request = std::move(request);
    exchange->handlers = std::move(handlers);
    exchange->response.times.started = steady_clock().now();
    loop_.post([this, exchange] { begin(exchange); });
    return exchange;
  }

  // Runs on the loop if the client still lives; a call's handle may outlive it.
  static void cancel(const std::shared_ptr<Inbox>& inbox, const std::shared_ptr<ClientExchange>& exchange) {
    struct Cancel final : Wakeable {
      explicit Cancel(std::shared_ptr<ClientExchange> e) : exchange(std::move(e)) {}
      void woken() override {
        if (exchange->over) return;
        if (const auto connection = exchange->connection.lock()) return connection->failed(ErrorCode::kCancelled, "cancelled");
        exchange->finish(fail(ErrorCode::kCancelled, "{}: cancelled", exchange->request.url));
      }
      std::shared_ptr<ClientExchange> exchange;
    };
    inbox->wake(std::make_shared<Cancel>(exchange));
  }

  const std::shared_ptr<Inbox>& inbox() const { return loop_.inbox(); }
  std::size_t kept() const { return kept_count_.load(std::memory_order_relaxed); }

  void keep(ClientConnection& connection) override {
    if (kept_count_.load(std::memory_order_relaxed) >= options_.max_kept_connections) return connection.close();
    connection.keep_until(steady_clock().now() + options_.keep_time);
    kept_[connection.key()].push_back(connections_.at(&connection));
    kept_count_.fetch_add(1, std::memory_order_relaxed);
  }

  void remove(ClientConnection& connection) override {
    if (const auto list = kept_.find(connection.key()); list != kept_.end()) {
      const auto removed = std::erase_if(list->second, [&](const auto& kept) { return kept.get() == &connection; });
      kept_count_.fetch_sub(removed, std::memory_order_relaxed);
      if (list->second.empty()) kept_.erase(list);
    }
    connections_.erase(&connection);
  }

  void send_again(const std::shared_ptr<ClientExchange>& exchange) override { open(exchange); }

 private:
  static std::string key_of(const ClientExchange& exchange) {
    return fmt::format("{}|{}|{}|{}", exchange.url.tls, exchange.url.host, exchange.url.port, exchange.request.unix_socket);
  }

  void begin(const std::shared_ptr<ClientExchange>& exchange) {
    if (exchange->over) return;
    auto url = parse_url(exchange->request.url);
    if (!url) return exchange->finish(std::unexpected(url.error()));
    exchange->url = std::move(*url);
    if (!is_token(exchange->request.method)) {
      return exchange->finish(fail(ErrorCode::kInvalidArgument, "{} is no method", exchange->request.method));
    }
    if (!exchange->request.fresh_connection) {
      if (const auto connection = take_kept(key_of(*exchange))) return connection->carry(exchange);
    }
    open(exchange);
  }

  // The one used last: the others can then grow old.
  std::shared_ptr<ClientConnection> take_kept(const std::string& key) {
    while (true) {
      const auto list = kept_.find(key);
      if (list == kept_.end()) return nullptr;
      const auto connection = list->second.back();
      if (connection->usable()) {
        list->second.pop_back();
        if (list->second.empty()) kept_.erase(list);
        kept_count_.fetch_sub(1, std::memory_order_relaxed);
        return connection;
      }
      connection->close();  // and so it leaves the list
    }
  }

  void open(const std::shared_ptr<ClientExchange>& exchange) {
    const auto connection =
        std::make_shared<ClientConnection>(loop_, *this, key_of(*exchange), exchange->url.tls ? tls_ : nullptr, options_.user_agent);
    connections_.emplace(connection.get(), connection);
    connection->begin(exchange);
    if (!exchange->request.unix_socket.empty()) {
      const auto address = parse_socket_address("unix:" + exchange->request.unix_socket);
      if (!address) return connection->failed(ErrorCode::kInvalidArgument, address.error().message);
      return connection->resolved({*address});
    }
    resolver_->resolve(exchange->url.host, exchange->url.port, [connection](const Result<std::vector<SocketAddress>>& addresses) {
      if (!addresses) return connection->failed(addresses.error().code, addresses.error().message);
      connection->resolved(*addresses);
    });
  }

  void end_all() {
    while (!connections_.empty()) connections_.begin()->second->failed(ErrorCode::kCancelled, "the client ends");
    resolver_.reset();
  }

  const ClientOptions options_;
  const std::shared_ptr<TlsContext> tls_;
  std::unordered_map<ClientConnection*, std::shared_ptr<ClientConnection>> connections_;
  std::map<std::string, std::vector<std::shared_ptr<ClientConnection>>> kept_;
  std::atomic<std::size_t> kept_count_{0};
  Loop loop_;
  std::unique_ptr<Resolver> resolver_;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::make(ClientOptions options) {
  WEIR_ASSIGN(auto tls, TlsContext::for_client(options.tls));
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(std::move(options), std::move(tls))));
}

Client::Call Client::start(ClientRequest request, ClientHandlers handlers) {
  Call call;
  call.cancel_ = [inbox = impl_->inbox(), exchange = impl_->start(std::move(request), std::move(handlers))] {
    Impl::cancel(inbox, exchange);
  };
  return call;
}

void Client::Call::cancel() const {
  if (cancel_) cancel_();
}

Result<ClientResponse> Client::fetch(ClientRequest request) {
  std::promise<Result<ClientResponse>> promise;
  ClientHandlers handlers;
  handlers.on_done = [&promise](const Status& status, ClientResponse& response) {
    if (status) {
      promise.set_value(std::move(response));
    } else {
      promise.set_value(std::unexpected(status.error()));
    }
  };
  start(std::move(request), std::move(handlers));
  return promise.get_future().get();
}

std::size_t Client::kept_connections() const { return impl_->kept(); }

}  // namespace weir::http
