// SPDX-License-Identifier: Apache-2.0
// One request for text from its prompts to its last byte: submits to the engine, turns events into what the client gets, and ends once,
// whoever ends it: the model, the client that goes, a deadline, an error. Everything but start() and the callbacks runs on the pump's
// thread; neither an io thread nor the engine ever waits for it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/output_format.h"
#include "api/response_writer.h"
#include "http/responder.h"
#include "serving/access.h"
#include "serving/event_pump.h"
#include "serving/model_registry.h"
#include "serving/observer.h"

namespace weir::serving {

// Sends an error in the dialect's shape, with Retry-After where it says so.
void respond_error(const http::Responder& responder, const api::ApiError& error, std::string document, const http::Headers& headers = {});

struct SessionSettings {
  Duration comment_after{};
  std::size_t max_queued_bytes = 1u << 20;
  Duration quiet_start = std::chrono::seconds(5);  // a stream that waits in the queue for so long begins without a token
  double watts = 0;
  std::string watts_source;  // "declared", …
};

struct SessionRequest {
  std::shared_ptr<ModelLease> lease;
  http::Responder responder;
  api::GenerationRequest request;
  std::unique_ptr<api::ResponseWriter> writer;
  std::vector<api::AnswerContext::Prompt> prompts;
  std::unique_ptr<Ticket> ticket;
  RequestRecord record;   // as far as known
  http::Headers headers;  // for the answer
  TimePoint deadline = TimePoint::max();
};

class GenerationSession final : public EventPump::Client {
 public:
  GenerationSession(SessionRequest request, const SessionSettings& settings, EventPump& pump, Observer* observer,
                    std::atomic<std::int64_t>& count);
  ~GenerationSession() override;

  // Submits. The answer, be it an error, comes through the responder.
  void start();

 private:
  struct Choice {
    std::unique_ptr<api::OutputParser> parser;
    api::ChoiceDelta kept;  // of best_of, all of it
    double logprob = 0;     // the sum, for best_of
    bool ended = false;
  };

  void on_pump() override;
  void on_tick() override;
  void on_gone(http::Gone gone);

  api::ApiResult<void> submit();
  engine::CompletionRequest completion_request(std::size_t prompt) const;
  void make_choices();
  bool read(std::size_t prompt);
  bool handle(std::size_t prompt, engine::CompletionEvent&& event);
  api::ChoiceEnd end_of(Choice& choice, engine::Finish&& finish);
  void count(std::size_t prompt, const engine::CompletionEvent& event);
  void emit(const api::ChoiceDelta& delta);
  void emit_best();
  void begin();
  void finish();
  void fail(api::ApiError error);
  void end(int status, const std::string& error_code, bool cancelled);
  bool answer_gone();
  api::Timings timings() const;
  bool buffered() const { return picked_ < made_; }

  SessionRequest call_;
  const SessionSettings& settings_;
  EventPump& pump_;
  Observer* observer_;
  std::atomic<std::int64_t>& count_;
  api::Sink sink_;

  std::mutex streams_mutex_;  // against on_gone() alone
  std::vector<std::unique_ptr<engine::CompletionStream>> streams_;
  std::atomic<http::Gone> gone_{http::Gone::kNo};
  std::atomic<bool> started_{false};           // start() is through: the pump's thread may have it
  std::optional<api::ApiError> refusal_ = {};  // by the engine, at once

  std::int32_t made_ = 1, picked_ = 1;  // answers to a prompt, and how many of them are returned
  std::vector<Choice> choices_;
  std::size_t open_ = 0;
  bool begun_ = false, stream_begun_ = false, over_ = false, broken_ = false, watched_ = false;

  api::Usage usage_;
  std::int64_t drafted_ = 0, accepted_ = 0;
  std::vector<double> step_seconds_;  // of each prompt's rows
  engine::Timeline longest_;          // of the first answer that took longest
  engine::Timeline first_;
};

}  // namespace weir::serving
