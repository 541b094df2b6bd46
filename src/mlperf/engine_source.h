// SPDX-License-Identifier: Apache-2.0
// The engine in process as LoadGen's system under test. All open samples run together in the engine's steps; nothing is kept from one
// sample to the next and nothing is guessed, as the rules want it. One thread hands over and tells.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/hand_over.h"
#include "mlperf/answer_source.h"
#include "mlperf/dataset.h"

namespace weir::mlperf {

struct EngineSourceOptions {
  std::int64_t max_tokens = 128, min_tokens = 2;
  bool chat = true;  // a prompt is what a user says, put into the model's chat template; else the bare text
  std::int32_t max_running = 32;
  std::optional<DType> kv_type = {};
};

class EngineSource final : public AnswerSource {
 public:
  // The model outlives it. Prompts are made into ids here, before anything is timed.
  static Result<std::unique_ptr<EngineSource>> start(engine::LoadedModel& loaded, const EngineSourceOptions& options,
                                                     const Dataset& dataset);
  ~EngineSource() override;

  const std::string& name() const override { return name_; }
  void ask(std::span<const Asked> asked, AnswerSink& sink) override;

  // The text of an answer as LoadGen's accuracy log keeps it: ids as little-endian int32.
  std::string decode(std::string_view data) const;
  std::int64_t longest_prompt() const { return longest_; }

 private:
  struct Waiting {
    Asked asked;
    AnswerSink* sink;
  };
  struct Open {
    Waiting who;
    std::unique_ptr<engine::CompletionStream> stream;
    std::vector<std::int32_t> tokens;
    bool first = false;
  };
  // What other threads leave for the one here; it outlives callbacks that come late.
  struct Inbox {
    std::mutex mutex;
    std::vector<Waiting> asked;
    std::vector<std::uint64_t> ready;  // tickets with events
    bool stop = false;
    engine::Notice notice;
  };

  EngineSource(engine::LoadedModel& loaded, const EngineSourceOptions& options);
  Status encode(const Dataset& dataset);
  void run();
  void submit_waiting();
  void begin(const Waiting& who);
  void take_events(std::uint64_t ticket);
  void take(Open& open, engine::CompletionEvent& event);

  engine::LoadedModel& loaded_;
  EngineSourceOptions options_;
  std::string name_;
  std::vector<std::vector<TokenId>> prompts_;
  std::int64_t longest_ = 0;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::unique_ptr<engine::Engine> engine_;
  std::deque<Waiting> waiting_;
  std::unordered_map<std::uint64_t, Open> open_;
  std::uint64_t next_ticket_ = 0;
  std::thread thread_;
};

}  // namespace weir::mlperf
