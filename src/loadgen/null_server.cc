// SPDX-License-Identifier: Apache-2.0
#include "loadgen/null_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <unordered_map>

#include "http/request_parser.h"
#include "http/socket_address.h"
#include "loadgen/event_loop.h"
#include "loadgen/null_metrics.h"
#include "loadgen/paced_answer.h"
#include "loadgen/runner.h"
#include "loadgen/statistics.h"

namespace weir::loadgen {
namespace {

constexpr std::uint64_t kListenTag = 0;
constexpr std::size_t kMaxConnections = 60000, kMaxBody = 32u << 20, kMaxUnsent = 8u << 20, kMaxLateness = 1u << 20,
                      kMaxServed = 10'000'000;

struct Peer {
  int fd = -1;
  std::uint64_t tag = 0;
  std::string in, out;
  std::optional<http::RequestParser> parser;
  std::optional<PacedAnswer> answer;
  TimePoint arrived{};
  std::uint64_t number = 0;  // of the request at hand
  bool serving = false, head_sent = false, writing = false, closing = false, cut = false, keep = true;
};

TimePoint now() { return steady_clock().now(); }

}  // namespace

class NullServer::Core final : public EventHandler {
 public:
  Core(NullServerOptions options, std::unique_ptr<EventLoop> loop, int listener)
      : options_(std::move(options)), loop_(std::move(loop)), listener_(listener) {
    lateness_.reserve(1024);
  }
  ~Core() override {
    for (auto& [tag, peer] : peers_) ::close(peer->fd);
    ::close(listener_);
  }

  void run() { loop_->run(*this); }
  void end() { ended_ = true, loop_->wake(); }
  NullServerStats stats();

  void on_due(std::uint64_t tag, TimePoint when) override;
  void on_socket(std::uint64_t tag, std::uint32_t events, TimePoint ready) override;

 private:
  void accept_all();
  void read(Peer& peer);
  void parse(Peer& peer);
  void dispatch(Peer& peer, const http::Request& request);
  void start_answer(Peer& peer, const NullRequest& request);
  void begin(Peer& peer, TimePoint when);
  void emit(Peer& peer);
  void finish(Peer& peer, TimePoint when);
  void give_turn(TimePoint when);
  void send(Peer& peer, std::string_view bytes);
  void flush(Peer& peer);
  void close(Peer& peer);
  void note_sent(const Peer& peer, TimePoint due);

  NullServerOptions options_;
  std::unique_ptr<EventLoop> loop_;
  int listener_;
  std::atomic<bool> ended_{false};
  std::unordered_map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  std::uint64_t next_tag_ = 1;
  std::deque<std::uint64_t> waiting_;  // for a slot
  int busy_slots_ = 0;
  std::optional<TimePoint> origin_;  // the first request's arrival
  NullServerStats stats_;
  NullCounts counts_;
  std::vector<float> lateness_;
};

NullServerStats NullServer::Core::stats() {
  std::vector<double> sorted(lateness_.begin(), lateness_.end());
  std::sort(sorted.begin(), sorted.end());
  stats_.late_p50 = percentile(sorted, 50);
  stats_.late_p99 = percentile(sorted, 99);
  stats_.late_max = percentile(sorted, 100);
  return stats_;
}

void NullServer::Core::note_sent(const Peer& peer, TimePoint due) {
  const TimePoint sent = now();
  const auto late = static_cast<float>(to_seconds(sent - due));
  if (peer.number <= stats_.served.size()) {
    ServedRequest& served = stats_.served[peer.number - 1];
    if (served.events++ == 0) served.first = sent;
    served.last = sent;
  }
  if (lateness_.size() < kMaxLateness)
    lateness_.push_back(late);
  else
    lateness_[stats_.events % kMaxLateness] = late;
  ++stats_.events;
}

void NullServer::Core::on_socket(std::uint64_t tag, std::uint32_t events, TimePoint) {
  if (ended_) return loop_->stop();
  if (tag == kListenTag) return accept_all();
  const auto found = peers_.find(tag);
  if (found == peers_.end()) return;
  Peer& peer = *found->second;
  if (events & EPOLLOUT) flush(peer);
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read(peer);
  if (peer.closing) close(peer);
}

void NullServer::Core::accept_all() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      loop_->remove(listener_);  // out of files: whoever connects waits until some are free again
      return loop_->at(now() + std::chrono::milliseconds(10), kListenTag);
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::uint64_t tag = next_tag_++;
    if (peers_.size() >= kMaxConnections || !loop_->watch(fd, EPOLLIN, tag)) {
      ::close(fd);
      continue;
    }
    auto peer = std::make_unique<Peer>();
    peer->fd = fd;
    peer->tag = tag;
    peers_.emplace(tag, std::move(peer));
  }
}

void NullServer::Core::read(Peer& peer) {
  char buffer[32768];
  const ssize_t got = ::recv(peer.fd, buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0 || peer.in.size() > kMaxBody) {
    peer.closing = true;
    return;
  }
  peer.in.append(buffer, static_cast<std::size_t>(got));
  parse(peer);
}

// One request at a time; what a client sends ahead waits in `in`.
void NullServer::Core::parse(Peer& peer) {
  while (!peer.serving && !peer.closing && !peer.in.empty()) {
    if (!peer.parser) peer.parser.emplace(http::HeadLimits{});
    const bool had_head = peer.parser->head_done();
    peer.in.erase(0, peer.parser->parse(peer.in));
    const bool has_head = peer.parser->head_done();
    if (has_head && !had_head && !peer.parser->failure()) {
      peer.parser->limit_body(kMaxBody);
      if (peer.parser->request().headers.has("Expect") && peer.in.empty()) send(peer, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    if (peer.parser->failure()) {
      send(peer, PacedAnswer::error_answer(peer.parser->failure()->status, std::string(peer.parser->failure()->message), false));
      peer.closing = true;
    } else if (peer.parser->done()) {
      const http::Request request = std::move(peer.parser->request());
      peer.parser.reset();
      peer.keep = request.keep_alive;
      dispatch(peer, request);
      if (!peer.keep && !peer.serving) peer.closing = true;
    } else if (!has_head || had_head) {
      return;
    }
  }
}

void NullServer::Core::dispatch(Peer& peer, const http::Request& request) {
  const bool chat = request.path.ends_with("/chat/completions");
  const auto json = [](std::string body) {
    return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
  };
  if (request.method == "GET" && request.path == "/health") return send(peer, json(R"({"status":"ok"})"));
  if (request.method == "GET" && request.path == "/metrics") {
    counts_.running = static_cast<std::uint64_t>(busy_slots_);
    counts_.waiting = waiting_.size();
    return send(peer, null_metrics_answer(counts_, options_.model));
  }
  if (request.method == "GET" && request.path == "/v1/models")
    return send(peer, json(fmt::format(R"({{"object":"list","data":[{{"id":"{}","object":"model","created":0,"owned_by":"weir"}}]}})",
                                       options_.model)));
  if (request.method != "POST" || (!chat && !request.path.ends_with("/completions")))
    return send(peer, PacedAnswer::error_answer(
                          404, "there are POST /v1/chat/completions and /v1/completions, GET /v1/models, /metrics and /health"));
  const auto parsed = parse_null_request(request.body, chat);
  if (!parsed) return send(peer, PacedAnswer::error_answer(400, parsed.error().message));
  start_answer(peer, *parsed);
}

void NullServer::Core::start_answer(Peer& peer, const NullRequest& request) {
  peer.arrived = now();
  if (!origin_) origin_ = peer.arrived;
  peer.number = ++stats_.requests;
  if (options_.keep_requests && stats_.served.size() < kMaxServed) stats_.served.push_back({.arrived = peer.arrived});
  const auto each = [&](std::int64_t n) { return n > 0 && static_cast<std::int64_t>(peer.number) % n == 0; };
  if (each(options_.error_every)) {
    ++counts_.failed;
    return send(peer, PacedAnswer::error_answer(options_.error_status, "an error as programmed"));
  }
  peer.cut = each(options_.cut_every);
  peer.answer.emplace(options_, request, peer.number);
  peer.serving = true;
  peer.head_sent = false;
  if (options_.slots > 0 && busy_slots_ >= options_.slots)
    waiting_.push_back(peer.tag);
  else
    begin(peer, peer.arrived);
}

void NullServer::Core::begin(Peer& peer, TimePoint when) {
  ++busy_slots_;
  PacedAnswer& answer = *peer.answer;
  counts_.prompt_tokens += static_cast<std::uint64_t>(std::max<std::int64_t>(0, answer.request().prompt_tokens));
  answer.begin(when, peer.arrived, *origin_);
  if (!answer.request().stream) answer.skip_to_end();
  if (answer.due() <= now()) return emit(peer);
  if (answer.request().stream) {
    send(peer, PacedAnswer::stream_head());
    peer.head_sent = true;
  }
  loop_->at(answer.due(), peer.tag);
}

void NullServer::Core::on_due(std::uint64_t tag, TimePoint) {
  if (tag == kListenTag) {
    if (!loop_->watch(listener_, EPOLLIN, kListenTag)) loop_->at(now() + std::chrono::milliseconds(10), kListenTag);
    return;
  }
  const auto found = peers_.find(tag);
  if (found == peers_.end()) return;
  Peer& peer = *found->second;
  if (peer.serving) emit(peer);
  if (peer.closing) close(peer);
}

// Each event in a write of its own, as servers do that want their readers to see it at once.
void NullServer::Core::emit(Peer& peer) {
  PacedAnswer& answer = *peer.answer;
  TimePoint due = answer.due();
  if (!answer.request().stream) {
    if (peer.cut) {
      peer.closing = true;
      return;
    }
    counts_.generated_tokens += static_cast<std::uint64_t>(answer.tokens());
    send(peer, answer.whole_answer());
    note_sent(peer, due);
    return finish(peer, due);
  }
  while (!peer.closing) {
    due = answer.due();
    if (due > now()) return loop_->at(due, peer.tag);
    std::string bytes = peer.head_sent ? std::string() : PacedAnswer::stream_head();
    peer.head_sent = true;
    const std::int64_t before = answer.sent();
    bytes += answer.take_event();
    counts_.generated_tokens += static_cast<std::uint64_t>(answer.sent() - before);
    send(peer, bytes);
    note_sent(peer, due);
    if (peer.cut && answer.sent() * 2 >= answer.tokens()) {
      peer.closing = true;
      return;
    }
    if (answer.over()) {
      send(peer, answer.closing());
      return finish(peer, due);
    }
  }
}

// The next in line begins when this one was due to end, not when that was noticed: the server's pace does not drift.
void NullServer::Core::finish(Peer& peer, TimePoint when) {
  peer.serving = false;
  peer.answer.reset();
  ++counts_.ok;
  --busy_slots_;
  if (!peer.keep) peer.closing = true;
  parse(peer);
  give_turn(when);
}

void NullServer::Core::give_turn(TimePoint when) {
  while (!waiting_.empty() && busy_slots_ < options_.slots) {
    const auto found = peers_.find(waiting_.front());
    waiting_.pop_front();
    if (found != peers_.end() && !found->second->closing) begin(*found->second, when);
  }
}

void NullServer::Core::send(Peer& peer, std::string_view bytes) {
  if (peer.closing) return;
  if (peer.out.empty()) {
    const ssize_t sent = ::send(peer.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      peer.closing = true;
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  }
  if (bytes.empty()) return;
  peer.out += bytes;
  if (peer.out.size() > kMaxUnsent) peer.closing = true;
  if (!peer.writing) peer.writing = loop_->change(peer.fd, EPOLLIN | EPOLLOUT, peer.tag).has_value();
}

void NullServer::Core::flush(Peer& peer) {
  const ssize_t sent = ::send(peer.fd, peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) peer.closing = true;
  if (sent > 0) peer.out.erase(0, static_cast<std::size_t>(sent));
  if (peer.out.empty() && peer.writing) peer.writing = !loop_->change(peer.fd, EPOLLIN, peer.tag).has_value();
}

void NullServer::Core::close(Peer& peer) {
  const bool had_slot = peer.serving && std::find(waiting_.begin(), waiting_.end(), peer.tag) == waiting_.end();
  if (!had_slot && peer.serving) std::erase(waiting_, peer.tag);
  if (peer.serving) ++(peer.cut ? counts_.failed : counts_.cancelled);
  loop_->remove(peer.fd);
  ::close(peer.fd);
  peers_.erase(peer.tag);
  if (!had_slot) return;
  --busy_slots_;
  give_turn(now());
}

std::string served_csv(const std::vector<ServedRequest>& served) {
  std::string out = "arrived_s,first_event_s,last_event_s,events\n";
  const auto seconds = [](TimePoint when) { return fmt::format("{:.9f}", to_seconds(when.time_since_epoch())); };
  for (const ServedRequest& r : served) {
    const bool sent = r.events > 0;
    out += fmt::format("{},{},{},{}\n", seconds(r.arrived), sent ? seconds(r.first) : "", sent ? seconds(r.last) : "", r.events);
  }
  return out;
}

Result<std::unique_ptr<NullServer>> NullServer::start(NullServerOptions options) {
  raise_file_limit();
  const auto plain = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\' && c != 0x7f; };
  if (!std::all_of(options.model.begin(), options.model.end(), plain))
    return fail(ErrorCode::kInvalidArgument, "the model's name must not have quotes, backslashes or control characters");
  if (options.tokens_per_event < 1 || options.slots < 0 || options.error_status < 400 || options.error_status > 599)
    return fail(ErrorCode::kInvalidArgument, "tokens per event are at least 1, slots at least 0, an error's status is 400 to 599");
  std::sort(options.stalls.begin(), options.stalls.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  WEIR_ASSIGN(http::SocketAddress address, http::parse_socket_address(options.listen));
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 || ::listen(fd, 4096) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    return fail(ErrorCode::kIo, "listening at {}: {}", options.listen, std::strerror(error));
  }
  auto loop = EventLoop::make(options.spin);
  const Status watched = loop ? (*loop)->watch(fd, EPOLLIN, kListenTag) : Status(std::unexpected(loop.error()));
  if (!watched) {
    ::close(fd);
    return std::unexpected(watched.error());
  }
  std::unique_ptr<NullServer> server(new NullServer());
  server->address_ = http::format_socket_address(address);
  server->core_ = std::make_unique<Core>(std::move(options), std::move(*loop), fd);
  server->thread_ = std::thread([core = server->core_.get()] { core->run(); });
  return server;
}

NullServer::~NullServer() { stop(); }

NullServerStats NullServer::stop() {
  if (thread_.joinable()) {
    core_->end();
    thread_.join();
  }
  return core_ ? core_->stats() : NullServerStats{};
}

}  // namespace weir::loadgen
