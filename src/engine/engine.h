// SPDX-License-Identifier: Apache-2.0
// Many requests at once on one model: a thread that owns the step loop, and the bounded hand-over to it. What a request gets does
// not depend on what else runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "engine/adapters.h"
#include "engine/completion_service.h"
#include "engine/loaded_model.h"
#include "engine/step_loop.h"

namespace weir::engine {

struct EngineOptions {
  std::int64_t context = 0;       // of one sequence at most, prompt and answer; 0 = the model's own, as far as the cache holds it
  std::int64_t cache_tokens = 0;  // in the KV cache, over all sequences and kept prefixes; 0 = by cache_bytes
  std::uint64_t cache_bytes = 0;  // 0 and no cache_tokens = a context for each of 4 sequences, at most a quarter of the memory
  std::optional<DType> kv_type = {};
  std::int32_t max_running = 32;  // sequences at once
  std::int32_t max_waiting = 1024;
  // Once requests have begun later than this for a while in a queue that grows, only those are taken that would begin sooner
  // (scheduler/standing_queue.h). Zero: a tenth of what requests take to run, at least 100 ms and at most 10 s.
  Duration max_wait = Duration::max();
  std::int32_t token_budget = 512;    // positions in a step at most
  std::string policy = "first-come";  // or "priority", "deadline", "fair-share"
  bool prefix_cache = true;
  bool tenants_share_prefixes = false;                    // else whoever measures times could learn what others asked
  Duration stall_limit = std::chrono::milliseconds(150);  // between two tokens of a stream, when prompts come meanwhile; 0 = none.
                                                          // For requests without a target of their own; kept by smaller chunks
  std::filesystem::path tier_folder = {};                 // of the second tier of the prefix cache; empty = none
  std::uint64_t tier_bytes = 4ull << 30;
  std::size_t event_limit = 0;            // kvcache::CacheOptions
  std::optional<LoadedModel> draft = {};  // a smaller model of the same vocabulary that guesses too
  std::optional<speculation::SpeculatorOptions> speculation = speculation::SpeculatorOptions{};  // none = never guess
  bool measure = true;  // what steps take, by kind of operation: two readings of the clock each, below 1 % of a small model's step
  std::function<void(const StepRecord&)> on_step = {};  // from the engine's thread
};

class Engine final : public CompletionService {
 public:
  // The model must outlive it, and nobody else runs it meanwhile. kUnsupported for encoders, kInvalidArgument for options that
  // contradict each other, kExhausted when the memory does not suffice.
  static Result<std::unique_ptr<Engine>> start(LoadedModel& loaded, EngineOptions options, const Clock& clock = steady_clock());
  // Ends all requests as cancelled.
  ~Engine() override;

  Result<std::unique_ptr<CompletionStream>> submit(CompletionRequest request, std::function<void()> on_event = {}) override;
  ServiceStats stats() const override;

  // No new requests from now on; returns when all have ended or `most` has passed, and how many are still open then.
  std::int64_t drain(Duration most);

  // Runs `work` on the engine's thread between two steps and waits for its end: nothing else uses the model meanwhile, so it may (vectors
  // of a model that also generates). All streams wait for it: keep it short. kExhausted when too much of the kind waits already,
  // kCancelled when the engine stops, kDeadline when `patience` has passed: what has not begun then never does, but what has may
  // still run, so `work` owns all that it uses.
  Status run_between_steps(std::function<void()> work, Duration patience);

  // Of keys, values and states.
  std::uint64_t cache_bytes() const;

  // Loaded and unloaded at any time; requests that run keep theirs.
  Adapters& adapters() { return adapters_; }

  std::int64_t context() const { return context_; }
  const LoadedModel& loaded() const { return loaded_; }
  // What a follower of the prefix cache gets; needs EngineOptions::event_limit.
  std::vector<kvcache::CacheEvent> drain_cache_events();
  // All that is stored now, as kStored events, for a follower that begins or has lost some: what drain_cache_events() gives afterwards
  // comes behind it. kDeadline when the loop does not answer in time.
  Result<std::vector<kvcache::CacheEvent>> cache_snapshot(Duration patience = std::chrono::seconds(10));

 private:
  struct Parts;
  Engine(LoadedModel& loaded, EngineOptions options, const Clock& clock);
  Status build();
  Status build_speculator();
  Result<Admission> check(CompletionRequest request) const;
  Result<std::int64_t> token_limit(const CompletionRequest& request) const;
  std::string salt_of(const CompletionRequest& request, const NamedAdapter* adapter) const;
  void run();
  void idle();
  void take_in();
  void guarded(const std::function<void()>& work);
  void settle();
  void save_prefixes();
  void publish(bool in_step);

  LoadedModel& loaded_;
  EngineOptions options_;
  const Clock& clock_;
  std::int64_t context_ = 0, cache_tokens_ = 0;
  Adapters adapters_;
  std::unique_ptr<Parts> parts_;
  std::shared_ptr<Notice> notice_ = std::make_shared<Notice>();
  std::atomic<bool> stopping_{false}, draining_{false};
  std::atomic<std::int64_t> handed_over_{0};  // and not yet among the open requests of stats_
  std::int64_t taken_in_ = 0;                 // by the thread, since stats_ was written
  mutable std::mutex stats_mutex_;
  ServiceStats stats_;
  std::vector<kvcache::CacheEvent> cache_events_;
  std::thread thread_;
};

}  // namespace weir::engine
