// SPDX-License-Identifier: Apache-2.0
#include "bench/loopback_speed.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "base/clock.h"
#include "bench/loopback_socket.h"
#include "kernels/limits/machine_limits.h"

namespace weir::bench {
namespace {

constexpr int kRuns = 5;
constexpr std::size_t kWrite = 64u << 10, kMostRoundTrips = 200'000;  // a run

TimePoint now() { return steady_clock().now(); }

// Ends, as every thread here, when its peer does or when a call meets its deadline.
Status send_for(const Socket& socket, double seconds) {
  const std::vector<std::byte> bytes(kWrite);
  const TimePoint start = now();
  Status status;
  do status = socket.send(bytes);
  while (status && to_seconds(now() - start) < seconds);
  socket.end_sending();
  return status;
}

void echo(const Socket& socket) {
  std::array<std::byte, 1> byte{};
  while (true) {
    const auto got = socket.receive(byte);
    if (!got || *got == 0 || !socket.send(byte)) return;
  }
}

void accept_and_close(const Socket& listener, const std::atomic<bool>& ended) {
  while (!ended) (void)listener.accept();
}

// Bytes per second until the sender's end has arrived.
Result<double> stream_run(double seconds) {
  WEIR_ASSIGN(const SocketPair pair, connected_pair());
  std::vector<std::byte> into(4 * kWrite);
  Status sent;
  std::jthread sender([&] { sent = send_for(pair.client, seconds); });
  std::uint64_t bytes = 0;
  const TimePoint start = now();
  while (true) {
    const auto got = pair.server.receive(into);
    if (!got) pair.client.stop();
    WEIR_TRY(got);
    if (*got == 0) break;
    bytes += *got;
  }
  const double elapsed = to_seconds(now() - start);
  sender.join();
  WEIR_TRY(sent);
  return static_cast<double>(bytes) / std::max(elapsed, 1e-9);
}

Status round_trips(double seconds, std::vector<double>& out) {
  WEIR_ASSIGN(const SocketPair pair, connected_pair());
  const std::jthread server([&] { echo(pair.server); });
  std::array<std::byte, 1> byte{std::byte{7}};
  Status status;
  const TimePoint start = now();
  for (std::size_t i = 0; status && i < kMostRoundTrips; ++i) {
    const TimePoint sent = now();
    if (to_seconds(sent - start) >= seconds && i > 0) break;
    status = pair.client.send(byte);
    if (!status) break;
    const auto got = pair.client.receive(byte);
    if (!got)
      status = std::unexpected(got.error());
    else if (*got == 0)
      status = fail(ErrorCode::kNetwork, "loopback: the connection ended too soon");
    out.push_back(to_seconds(now() - sent));
  }
  pair.client.stop();
  return status;
}

Status connect_once(std::uint16_t port) {
  WEIR_ASSIGN(const Socket socket, Socket::connect(port));
  std::array<std::byte, 1> byte{};
  socket.forget_on_close();  // tens of thousands of these would use up the ports for a minute
  WEIR_TRY(socket.receive(byte));
  return {};
}

Result<double> connection_run(double seconds) {
  WEIR_ASSIGN(const Socket listener, Socket::listen());
  std::atomic<bool> ended = false;
  const std::jthread server([&] { accept_and_close(listener, ended); });
  Status status;
  int count = 0;
  const TimePoint start = now();
  double elapsed = 0;
  while (status && (elapsed < seconds || count == 0)) {
    status = connect_once(listener.port());
    elapsed = to_seconds(now() - start);
    ++count;
  }
  ended = true;
  listener.stop();
  WEIR_TRY(status);
  return count / std::max(elapsed, 1e-9);
}

template <class Run>
Result<Spread> several(const std::function<bool()>& keep_going, Run run) {
  std::vector<double> figures;
  for (int i = 0; i < kRuns; ++i) {
    if (!keep_going()) return fail(ErrorCode::kCancelled, "interrupted");
    WEIR_ASSIGN(const double figure, run());
    figures.push_back(figure);
  }
  return spread_of(std::move(figures));
}

}  // namespace

Result<LoopbackSpeed> measure_loopback(double seconds, const std::function<bool()>& keep_going) {
  const double of_run = std::clamp(seconds, 0.0, 10.0) / kRuns;
  LoopbackSpeed speed;
  WEIR_ASSIGN(speed.stream_bytes_per_s, several(keep_going, [&] { return stream_run(of_run); }));
  std::vector<double> trips;
  const auto trip_run = [&]() -> Result<double> {
    WEIR_TRY(round_trips(of_run, trips));
    return 0;
  };
  WEIR_TRY(several(keep_going, trip_run));
  speed.round_trip = latency_of(std::move(trips));
  WEIR_ASSIGN(speed.connections_per_s, several(keep_going, [&] { return connection_run(of_run); }));
  return speed;
}

json::Object to_json(const LoopbackSpeed& loopback) {
  return {{"stream_gb_per_s", kernels::spread_json(loopback.stream_bytes_per_s, 1e-9)},
          {"round_trip_us", latency_us(loopback.round_trip)},
          {"connections_per_s", kernels::spread_json(loopback.connections_per_s, 1)}};
}

}  // namespace weir::bench
