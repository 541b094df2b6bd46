// SPDX-License-Identifier: Apache-2.0
// One thread's share of a run: its connections, its conversations, its records. Nothing is shared with other workers but the plan.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "http/sse.h"
#include "loadgen/answer_parser.h"
#include "loadgen/response_reader.h"
#include "loadgen/runner.h"
#include "loadgen/wire.h"

namespace weir::loadgen {

class Worker final : public EventHandler {
 public:
  // Worker `index` of `count`: it takes each count-th conversation.
  static Result<std::unique_ptr<Worker>> make(const LoadPlan& plan, const Target& target, const RunOptions& options, Progress& progress,
                                              int index, int count);
  ~Worker() override = default;

  Status warm_up();           // opens connections and waits for them; not on the loop
  void run(TimePoint start);  // until all is answered
  void take_results(RunResult& result, std::vector<float>& read_lags);

  void on_due(std::uint64_t tag, TimePoint when) override;
  void on_socket(std::uint64_t tag, std::uint32_t events, TimePoint ready) override;

 private:
  // A conversation under way, between two requests or in one.
  struct Session {
    std::size_t conversation = 0, turn = 0, record = 0;
    std::string history;  // what was said before, as messages
    std::string bytes;    // the request, whole
    Duration ready{};     // a later turn is due then
  };
  struct Connection {
    explicit Connection(const Target& target) : wire(target) {}
    Wire wire;
    std::uint64_t tag = 0;
    bool open = false, writing = false, reused = false, over = false;
    ResponseReader reader;
    http::SseParser events;
    std::string body, answer, error;
    bool failed = false, finished = false;  // an error within the stream; [DONE]
    std::size_t session = kNone;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  Worker(const LoadPlan& plan, const Target& target, const RunOptions& options, Progress& progress, int index, int count);

  Duration since_start() const { return steady_clock().now() - start_; }
  const Conversation& conversation_of(const Session& session) const;
  // A later turn repeats the answer, or its hash is wanted.
  bool wants_text(const Session& session) const { return plan_.shape.hash_answers || conversation_of(session).turns.size() > 1; }

  // worker.cc: what is due
  bool more_conversations() const;
  void prepare_next();
  void arrive();
  void begin_closed();
  std::size_t new_session(std::size_t conversation);
  void make_request(Session& session);
  void submit(std::size_t slot, Duration scheduled, Duration eligible);
  void end_turn(std::size_t slot, bool ok, std::string answer);
  void tick();
  void stop_if_over();

  // worker_io.cc: connections
  void start(std::size_t slot);
  Connection* connect();
  void on_connecting(Connection& connection);
  void write(Connection& connection);
  void read(Connection& connection, TimePoint ready);
  void take_body(Connection& connection, std::string_view bytes, Duration at);
  void take_piece(Connection& connection, AnswerPiece& piece, Duration at);
  void complete(Connection& connection, Duration at);
  void finish(Connection& connection, Outcome outcome, std::string error);
  void broken(Connection& connection, Outcome outcome, const std::string& reason);
  void release(Connection& connection, bool keep);
  void next_waiting(Duration now);
  void note_lag(TimePoint ready, TimePoint now);

  const LoadPlan& plan_;
  const Target& target_;
  const RunOptions& options_;
  Progress& progress_;
  const int index_, count_;
  BodyWriter body_;
  Random think_;
  std::unique_ptr<EventLoop> loop_;
  TimePoint start_{};
  std::size_t cap_ = 0, active_ = 0;

  std::size_t next_arrival_ = 0, prepared_ = kNone, sessions_open_ = 0;
  std::vector<Session> sessions_;
  std::vector<std::size_t> free_sessions_;
  std::deque<std::size_t> waiting_;
  Duration last_arrival_{};

  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;
  std::vector<std::unique_ptr<Connection>> graveyard_;  // closed ones that may still be on the stack
  std::uint64_t next_tag_ = 1;

  std::vector<RequestRecord> records_;
  std::vector<float> read_lags_;
  std::uint64_t opened_ = 0, resent_ = 0, reads_ = 0;
  std::string first_error_;
  LoopUsage usage_;
  bool interrupted_ = false;
};

}  // namespace weir::loadgen
