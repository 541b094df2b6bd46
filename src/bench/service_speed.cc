// SPDX-License-Identifier: Apache-2.0
#include "bench/service_speed.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <semaphore>
#include <thread>

#include "bench/prompts.h"
#include "engine/engine.h"

namespace weir::bench {
namespace {

using engine::CompletionRequest;
using engine::CompletionStream;

constexpr Duration kHeldAtMost = std::chrono::seconds(30);
constexpr Duration kPoll = std::chrono::milliseconds(200);
constexpr std::int32_t kBlock = 32;

// Waits for the end of an answer, looking at `keep_going` meanwhile.
Result<engine::Finish> wait_for(CompletionStream& stream, const KeepGoing& keep_going) {
  while (keep_going()) {
    auto event = stream.wait(kPoll);
    if (!event || !event->last) continue;
    if (event->finish->error) return std::unexpected(std::move(*event->finish->error));
    return std::move(*event->finish);
  }
  return fail(ErrorCode::kCancelled, "interrupted");
}

// While it lives the engine takes no step: what is submitted meanwhile begins together, however small the model and however slow the
// thread that submits. When the engine cannot be held, requests begin as they come.
class Held {
 public:
  explicit Held(engine::Engine& engine) {
    thread_ = std::thread([&engine, gate = gate_] {
      const Status held = engine.run_between_steps(
          [gate] {
            gate->begun.release();
            gate->open.acquire();
          },
          kHeldAtMost);
      if (!held) gate->begun.release();
    });
    gate_->begun.acquire();
  }
  ~Held() {
    gate_->open.release();
    thread_.join();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  struct Gate {
    std::counting_semaphore<2> begun{0};
    std::binary_semaphore open{0};
  };
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::thread thread_;
};

class Service {
 public:
  Service(engine::LoadedModel& loaded, const EngineSpeedOptions& options, std::int32_t batch, const KeepGoing& keep_going,
          const Clock& clock)
      : loaded_(loaded), options_(options), batch_(batch), keep_going_(keep_going), clock_(clock), tokens_(ordinary_tokens(loaded)) {}

  Status start() {
    const std::int64_t longest = tokens_per_sequence(options_) + slack() + kBlock;
    engine::EngineOptions o;
    o.cache_tokens = batch_ * (longest + kBlock);
    o.context = longest;
    o.kv_type = options_.kv_type;
    o.max_running = batch_;
    o.token_budget = std::max(options_.chunk, batch_ + kBlock);
    o.stall_limit = {};
    o.speculation.reset();
    o.on_step = [this](const engine::StepRecord& record) {
      const std::lock_guard lock(mutex_);
      slowest_ = std::max(slowest_, record.elapsed);
    };
    WEIR_ASSIGN(engine_, engine::Engine::start(loaded_, std::move(o), clock_));
    return {};
  }

  Result<EngineRun> run(std::uint64_t salt) {
    std::vector<std::vector<TokenId>> prompts;
    for (std::int32_t i = 0; i < batch_; ++i)
      prompts.push_back(random_prompt(tokens_, options_.depth + options_.prompt, options_.seed,
                                      salt * static_cast<std::uint64_t>(batch_) + static_cast<std::uint64_t>(i)));
    EngineRun run;
    if (options_.depth > 0) {
      WEIR_ASSIGN([[maybe_unused]] const double untimed, take_in(prompts, options_.depth));
    }
    WEIR_ASSIGN(run.prefill_s, take_in(prompts, options_.depth + options_.prompt));
    WEIR_ASSIGN(const double rate, decode(prompts));
    run.decode_s = static_cast<double>(batch_ * options_.generate) / rate;
    run.slowest_step_s = to_seconds(slowest_);
    return run;
  }

 private:
  // Tokens that the first sequences are ahead of the last when all stream.
  std::int64_t slack() const { return batch_ / 4 + 4; }

  Result<double> take_in(const std::vector<std::vector<TokenId>>& prompts, std::int64_t tokens) {
    const TimePoint start = clock_.now();
    std::vector<std::unique_ptr<CompletionStream>> streams;
    for (const auto& prompt : prompts) {
      CompletionRequest request;
      request.prompt.assign(prompt.begin(), prompt.begin() + tokens);
      request.prompt_only = true;
      WEIR_ASSIGN(auto stream, engine_->submit(std::move(request)));
      streams.push_back(std::move(stream));
    }
    for (auto& stream : streams) {
      WEIR_ASSIGN([[maybe_unused]] const engine::Finish end, wait_for(*stream, keep_going_));
    }
    return to_seconds(clock_.now() - start);
  }

  Result<std::vector<std::unique_ptr<CompletionStream>>> submit_together(const std::vector<std::vector<TokenId>>& prompts) {
    const Held held(*engine_);
    std::vector<std::unique_ptr<CompletionStream>> streams;
    for (const auto& prompt : prompts) {
      CompletionRequest request{.prompt = prompt, .max_tokens = options_.generate + slack(), .ignore_end = true};
      WEIR_ASSIGN(auto stream, engine_->submit(std::move(request)));
      streams.push_back(std::move(stream));
    }
    return streams;
  }

  // Tokens per second over all sequences.
  Result<double> decode(const std::vector<std::vector<TokenId>>& prompts) {
    {
      const std::lock_guard lock(mutex_);
      slowest_ = {};
    }
    WEIR_ASSIGN(const auto streams, submit_together(prompts));
    std::vector<engine::Finish> ends;
    for (auto& stream : streams) {
      WEIR_ASSIGN(engine::Finish end, wait_for(*stream, keep_going_));
      ends.push_back(std::move(end));
    }
    TimePoint all_stream{}, first_end = TimePoint::max();
    for (const engine::Finish& end : ends) {
      all_stream = std::max(all_stream, end.timeline.queued + end.timeline.tokens.front());
      first_end = std::min(first_end, end.timeline.queued + end.timeline.tokens.back());
    }
    std::int64_t tokens = 0;
    for (const engine::Finish& end : ends) {
      tokens += std::ranges::count_if(end.timeline.tokens, [&](Duration at) {
        const TimePoint when = end.timeline.queued + at;
        return when > all_stream && when <= first_end;
      });
    }
    if (tokens == 0) return fail(ErrorCode::kInvalidArgument, "too few tokens to time: use a larger --generate");
    return static_cast<double>(tokens) / to_seconds(first_end - all_stream);
  }

  engine::LoadedModel& loaded_;
  const EngineSpeedOptions& options_;
  std::int32_t batch_;
  const KeepGoing& keep_going_;
  const Clock& clock_;
  std::vector<TokenId> tokens_;
  std::mutex mutex_;
  Duration slowest_{};
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace

Result<EngineCase> measure_service(engine::LoadedModel& loaded, const EngineSpeedOptions& options, std::int32_t batch,
                                   const kernels::Limits& limits, const KeepGoing& keep_going, const Clock& clock) {
  WEIR_TRY(check_options(loaded, options));
  Service service(loaded, options, batch, keep_going, clock);
  WEIR_TRY(service.start());
  EngineCase result{.batch = batch, .prompt = options.prompt, .generate = options.generate, .depth = options.depth};
  for (int i = 0; i <= options.runs; ++i) {  // the first warms up
    WEIR_ASSIGN(const EngineRun run, service.run(static_cast<std::uint64_t>(i)));
    if (i > 0) result.runs.push_back(run);
  }
  count_work(result, loaded, options, limits);
  return result;
}

}  // namespace weir::bench
