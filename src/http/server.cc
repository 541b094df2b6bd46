// SPDX-License-Identifier: Apache-2.0
// Puts loops, listeners and connections together: start, drain, stop.
#include "http/server.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <unordered_map>

#include "base/log.h"
#include "http/connection.h"
#include "http/listener.h"
#include "http/server_core.h"

namespace weir::http {
namespace {

constexpr Duration kDrainPoll = std::chrono::milliseconds(10);
constexpr std::uint64_t kMaxRefusedAtOnce = 128;  // connections over the limit that get a 503 at a time; beyond, they are just closed

// A loop with its connections.
class Shard final : public ConnectionSet {
 public:
  Shard(ServerCore& core, int index) : core_(core), loop_("weir-http-" + std::to_string(index), core.options.on_thread_start) {}

  Loop& loop() { return loop_; }

  void adopt(int fd, std::string peer, bool tls, bool refused) {
    loop_.post([this, fd, peer = std::move(peer), tls, refused]() mutable {
      const auto connection = std::make_shared<Connection>(loop_, core_, *this, std::move(peer), refused ? core_.refusing : core_.open);
      connections_.emplace(connection.get(), connection);
      refused ? connection->start_refused(fd) : connection->start(fd, tls);
    });
  }

  void remove(Connection& connection) override { connections_.erase(&connection); }

  void drain() {
    loop_.run([this] {
      for (const auto& connection : all()) connection->drain();
    });
  }

  // Whether no connection is left before the deadline.
  bool wait_empty(TimePoint deadline) {
    while (true) {
      bool empty = false;
      loop_.run([&] { empty = connections_.empty(); });
      if (empty || steady_clock().now() >= deadline) return empty;
      std::this_thread::sleep_for(kDrainPoll);
    }
  }

  std::vector<DrainReport::Cut> cut() {
    std::vector<DrainReport::Cut> cuts;
    loop_.run([&] {
      for (const auto& connection : all()) {
        if (auto cut = connection->cut()) cuts.push_back(std::move(*cut));
      }
    });
    return cuts;
  }

 private:
  std::vector<std::shared_ptr<Connection>> all() const {
    std::vector<std::shared_ptr<Connection>> list;
    for (const auto& [key, connection] : connections_) list.push_back(connection);
    return list;
  }

  ServerCore& core_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  Loop loop_;  // last: its thread ends before what it uses
};

}  // namespace

class Server::Impl {
 public:
  ~Impl() { stop(); }

  Status start(ServerOptions options, std::vector<Route> routes) {
    if (options.listen.empty()) return fail(ErrorCode::kInvalidArgument, "the server has no address to listen on");
    if (options.io_threads < 1 || options.io_threads > 64)
      return fail(ErrorCode::kInvalidArgument, "io threads: {} is not in 1 to 64", options.io_threads);
    WEIR_ASSIGN(core_.router, Router::make(std::move(routes)));
    core_.options = std::move(options);
    const std::vector<Listen>& listen = core_.options.listen;
    if (std::any_of(listen.begin(), listen.end(), [](const Listen& one) { return one.tls; })) WEIR_TRY(reload_tls());
    for (int i = 0; i < core_.options.io_threads; ++i) shards_.push_back(std::make_unique<Shard>(core_, i));
    for (const Listen& one : listen) {
      WEIR_ASSIGN(auto listener, Listener::open(shards_.front()->loop(), one));
      listeners_.push_back(std::move(listener));
    }
    shards_.front()->loop().run([&] {
      for (std::size_t i = 0; i < listeners_.size(); ++i) {
        listeners_[i]->start([this, tls = listen[i].tls](int fd, std::string peer) { accept(fd, std::move(peer), tls); });
      }
    });
    return {};
  }

  Status reload_tls() {
    WEIR_ASSIGN(auto tls, TlsContext::for_server(core_.options.tls));
    core_.set_tls(std::move(tls));
    return {};
  }

  std::vector<std::string> addresses() const {
    std::vector<std::string> list;
    for (const auto& listener : listeners_) list.push_back(listener->address());
    return list;
  }

  ServerStats stats() const {
    const auto read = [](const std::atomic<std::uint64_t>& value) { return value.load(std::memory_order_relaxed); };
    return {.connections_open = read(core_.open),
            .connections_accepted = read(core_.accepted),
            .connections_refused = read(core_.refused),
            .requests_active = read(core_.active),
            .requests_done = read(core_.done),
            .requests_malformed = read(core_.malformed),
            .timeouts = read(core_.timeouts),
            .clients_gone = read(core_.clients_gone),
            .body_bytes_held = read(core_.body_bytes)};
  }

  DrainReport drain(Duration time) {
    const TimePoint deadline = steady_clock().now() + time;
    core_.draining.store(true);
    close_listeners();
    DrainReport report;
    report.finished = core_.active.load();
    for (const auto& shard : shards_) shard->drain();
    for (const auto& shard : shards_) {
      if (shard->wait_empty(deadline)) continue;
      for (DrainReport::Cut& cut : shard->cut()) report.cut.push_back(std::move(cut));
    }
    report.finished -= std::min<std::uint64_t>(report.finished, report.cut.size());
    return report;
  }

 private:
  void accept(int fd, std::string peer, bool tls) {
    core_.accepted.fetch_add(1, std::memory_order_relaxed);
    Shard& shard = *shards_[next_shard_++ % shards_.size()];
    if (core_.open.fetch_add(1, std::memory_order_relaxed) < core_.options.limits.max_connections) {
      return shard.adopt(fd, std::move(peer), tls, false);
    }
    core_.open.fetch_sub(1, std::memory_order_relaxed);
    core_.refused.fetch_add(1, std::memory_order_relaxed);
    if (!tls && core_.refusing.fetch_add(1, std::memory_order_relaxed) < kMaxRefusedAtOnce)
      return shard.adopt(fd, std::move(peer), false, true);
    if (!tls) core_.refusing.fetch_sub(1, std::memory_order_relaxed);
    ::close(fd);
  }

  void close_listeners() {
    if (shards_.empty()) return;
    shards_.front()->loop().run([this] {
      for (const auto& listener : listeners_) listener->close();
    });
  }

  void stop() {
    core_.draining.store(true);
    close_listeners();
    for (const auto& shard : shards_) shard->cut();
    for (const auto& shard : shards_) shard->loop().stop();
    listeners_.clear();
  }

  ServerCore core_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::size_t next_shard_ = 0;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, std::vector<Route> routes) {
  auto impl = std::make_unique<Impl>();
  WEIR_TRY(impl->start(std::move(options), std::move(routes)));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::vector<std::string> Server::addresses() const { return impl_->addresses(); }
ServerStats Server::stats() const { return impl_->stats(); }
Status Server::reload_tls() { return impl_->reload_tls(); }
DrainReport Server::drain(Duration deadline) { return impl_->drain(deadline); }

}  // namespace weir::http
