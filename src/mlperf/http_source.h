// SPDX-License-Identifier: Apache-2.0
// An OpenAI-compatible server as LoadGen's system under test: each sample a streamed request, all on one event loop with kept connections.
// Requests carry a cache_salt of their own, so that a server that knows the field keeps nothing from sample to sample.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "http/sse.h"
#include "loadgen/event_loop.h"
#include "loadgen/response_reader.h"
#include "loadgen/target.h"
#include "loadgen/wire.h"
#include "mlperf/answer_source.h"
#include "mlperf/dataset.h"

namespace weir::mlperf {

struct HttpSourceOptions {
  loadgen::TargetOptions target;
  std::string model;
  std::int64_t max_tokens = 128, min_tokens = 2;
  bool cache_salt = true;
  std::size_t max_open = 512;  // connections; further samples wait, and their latency counts
  Duration timeout = std::chrono::minutes(10);
  std::uint64_t seed = 1;  // of the salts
};

class HttpSource final : public AnswerSource, private loadgen::EventHandler {
 public:
  static Result<std::unique_ptr<HttpSource>> start(const HttpSourceOptions& options, const Dataset& dataset);
  ~HttpSource() override;

  const std::string& name() const override { return name_; }
  void ask(std::span<const Asked> asked, AnswerSink& sink) override;

  // Of all answers so far: prompt tokens that the server says it had kept, and answers whose tokens it did not count.
  struct Notes {
    std::int64_t cached_tokens = 0, uncounted = 0;
  };
  Notes notes() const;

 private:
  struct Waiting {
    Asked asked;
    AnswerSink* sink = nullptr;
  };
  struct Connection {
    explicit Connection(const loadgen::Target& target) : wire(target) {}
    loadgen::Wire wire;
    std::uint64_t tag = 0;
    bool open = false, busy = false, reused = false, first = false, finished = false;
    Waiting who;
    std::string request, answer, body, error;
    loadgen::ResponseReader reader;
    http::SseParser events;
    std::int64_t tokens = -1, pieces = 0, cached = -1;
    TimePoint started{};
  };

  HttpSource(const HttpSourceOptions& options, loadgen::Target target);
  Status make_bodies(const Dataset& dataset);
  void on_due(std::uint64_t tag, TimePoint when) override;
  void on_socket(std::uint64_t tag, std::uint32_t events, TimePoint ready) override;
  void take_in();
  void start_waiting();
  void begin(const Waiting& who);
  Connection* connect();
  void write(Connection& connection);
  void watch(Connection& connection);
  void read(Connection& connection);
  void take_body(Connection& connection, std::string_view bytes);
  void take_event(Connection& connection, std::string_view data);
  void complete(Connection& connection);
  void broken(Connection& connection, const std::string& reason);
  void end(Connection& connection, const std::string& failure);
  void drop(Connection& connection);

  HttpSourceOptions options_;
  loadgen::Target target_;
  std::string name_;
  std::vector<std::string> bodies_;  // without the salt and the closing brace
  std::unique_ptr<loadgen::EventLoop> loop_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> graveyard_;  // dropped while one of their methods ran
  std::vector<Connection*> idle_;
  std::deque<Waiting> waiting_;
  std::uint64_t next_tag_ = 16, asked_count_ = 0;
  std::size_t busy_ = 0;

  mutable std::mutex mutex_;
  std::vector<Waiting> inbox_;
  bool stop_ = false;
  Notes notes_;
  std::thread thread_;
};

}  // namespace weir::mlperf
