// SPDX-License-Identifier: Apache-2.0
// What the server costs: small requests on kept connections, and events to 256 streams from another thread, over loopback. The client
// shares the machine, so its part is told apart: `server_us` is processor time of the server's io thread per request or event.
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "http/client.h"
#include "http/server.h"

namespace {

using namespace weir;
using namespace weir::http;

// Processor time of the thread that ran remember().
class ThreadTime {
 public:
  void remember() { ::pthread_getcpuclockid(::pthread_self(), &clock_); }
  double seconds() const {
    timespec now{};
    ::clock_gettime(clock_, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

 private:
  clockid_t clock_ = CLOCK_MONOTONIC;
};

struct Bench {
  ThreadTime time;
  std::unique_ptr<Server> server;
  std::unique_ptr<Client> client;

  explicit Bench(std::vector<Route> routes) {
    ServerOptions options;
    options.listen = {{"127.0.0.1:0"}};
    options.on_thread_start = [this] { time.remember(); };
    server = std::move(*Server::start(std::move(options), std::move(routes)));
    client = std::move(*Client::make());
  }
  std::string url(const std::string& target) const { return "http://" + server->addresses().at(0) + target; }
};

class Countdown {
 public:
  void set(std::size_t count) { left_ = count; }
  void down() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) zero_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    zero_.wait(lock, [&] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable zero_;
  std::size_t left_ = 0;
};

ClientRequest get(std::string url) {
  ClientRequest request;
  request.url = std::move(url);
  return request;
}

void requests_on_kept_connections(benchmark::State& state) {
  Bench bench({{"GET", "/hello", [](const Request&, const Responder& r) { r.respond(Response::text(200, "hello")); }}});
  const auto at_once = static_cast<std::size_t>(state.range(0));
  const std::string url = bench.url("/hello");
  Countdown countdown;
  const double before = bench.time.seconds();
  for (auto _ : state) {
    countdown.set(at_once);
    for (std::size_t i = 0; i < at_once; ++i)
      bench.client->start(get(url), {.on_done = [&](const Status&, ClientResponse&) { countdown.down(); }});
    countdown.wait();
  }
  const auto requests = static_cast<double>(state.iterations()) * static_cast<double>(at_once);
  state.counters["requests"] = benchmark::Counter(requests, benchmark::Counter::kIsRate);
  state.counters["server_us"] = (bench.time.seconds() - before) * 1e6 / requests;
}
BENCHMARK(requests_on_kept_connections)->Arg(1)->Arg(32)->Arg(256)->UseRealTime()->Unit(benchmark::kMicrosecond);

void events_to_streams(benchmark::State& state) {
  const auto streams = static_cast<std::size_t>(state.range(0));
  std::mutex mutex;
  std::vector<Responder> responders;
  Countdown countdown;
  countdown.set(streams);
  Bench bench({{"GET", "/stream", [&](const Request&, const Responder& responder) {
                  responder.start_events();
                  {
                    const std::lock_guard lock(mutex);
                    responders.push_back(responder);
                  }
                  countdown.down();
                }}});
  for (std::size_t i = 0; i < streams; ++i) {
    bench.client->start(get(bench.url("/stream")), {.on_event = [&](SseEvent&) { countdown.down(); }});
  }
  countdown.wait();
  const std::string event(220, 'x');  // as large as a chunk of a chat completion
  double push_seconds = 0;
  const double before = bench.time.seconds();
  for (auto _ : state) {  // one step of an engine
    countdown.set(streams);
    const TimePoint start = steady_clock().now();
    for (const Responder& responder : responders) responder.send_event(event);
    push_seconds += to_seconds(steady_clock().now() - start);
    countdown.wait();
  }
  const auto events = static_cast<double>(state.iterations()) * static_cast<double>(streams);
  state.counters["events"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["server_us"] = (bench.time.seconds() - before) * 1e6 / events;
  state.counters["push_us"] = push_seconds * 1e6 / events;
  for (const Responder& responder : responders) responder.finish();
}
BENCHMARK(events_to_streams)->Arg(1)->Arg(32)->Arg(256)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
