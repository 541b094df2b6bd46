// SPDX-License-Identifier: Apache-2.0
// What the server counts, and its text for Prometheus. Names, labels and buckets stand in one table (metric_table.h); each quantity is
// recorded once and shown under all its names: ours, and vLLM's for routers and dashboards that read those. Recording takes no lock.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace weir::telemetry {

// One request for text, vectors or scores, at its end. Negative: unknown or does not apply.
struct RequestSample {
  std::string_view model;
  double ttft_s = -1, e2e_s = -1, queue_s = -1, prefill_s = -1, decode_s = -1;
  std::int64_t prompt_tokens = -1, cached_tokens = -1, generated_tokens = -1;
  std::int64_t max_tokens = 0;  // as asked for; 0 = none
  std::int32_t answers = 1;
  bool cancelled = false;
  std::span<const std::string> finish_reasons = {};  // "stop", "length", "tool_calls", "cancelled", "error": one for each answer
  std::string_view error_code = {};                  // empty: all went well
  std::span<const Duration> token_times = {};        // of the first answer since the request's start: gaps are inter-token latencies
};

// One step of a model's engine.
struct StepSample {
  std::int32_t sequences = 0, prefill_positions = 0, decode_positions = 0;
  std::int32_t drafted = 0, accepted = 0;
  double step_s = 0, forward_s = 0, choosing_s = 0;
};

// One request of any kind, as the HTTP server saw it.
struct HttpSample {
  std::string_view method, route;  // route: the pattern; empty when none matched
  int status = 0;                  // 0: nothing was sent
  double total_s = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::string_view gone = {};  // why nobody waited for the answer; empty: somebody did
};

// A model as it is at the time of a scrape. Counters are since its engine's start: when they fall, the engine is a new one.
struct ModelSnapshot {
  std::string name;
  std::string state;        // "ready", "loading", "unloaded", "failed"
  std::uint64_t bytes = 0;  // in memory
  bool has_engine = false;  // without one, the rest is not known
  std::int64_t running = 0, waiting = 0;
  double kv_use = 0;  // share of the blocks in use, 0 … 1
  std::int64_t block_tokens = 0, cache_blocks = 0, context = 0, max_running = 0;
  bool prefix_cache = true;
  std::int64_t prompt_tokens = 0, generated_tokens = 0, drafted_tokens = 0, accepted_tokens = 0, forced_tokens = 0;
  std::int64_t preemptions = 0, refused = 0, expired = 0, failed_steps = 0, prefix_asked = 0, prefix_found = 0, evicted = 0;
  double estimated_wait_s = 0, busy_s = 0;
  std::vector<std::string> adapters = {}, waiting_adapters = {};  // loaded and ready; asked for and not yet ready
  std::int64_t max_adapters = 0;                                  // 0: no limit of its own
};

// The server at the time of a scrape.
struct ServerSnapshot {
  std::uint64_t connections_open = 0, connections_accepted = 0, connections_refused = 0;
  std::uint64_t requests_active = 0, requests_malformed = 0, timeouts = 0, clients_gone = 0, body_bytes_held = 0;
  std::uint64_t spans_exported = 0, spans_dropped = 0, log_lines_dropped = 0;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // From any thread, without locks or allocations once a model and a route are known; names beyond a few hundred count as "other".
  void record_request(const RequestSample& sample);
  void record_step(std::string_view model, const StepSample& sample);
  void record_load(std::string_view model, bool loaded, double seconds);
  void record_http(const HttpSample& sample);
  void record_reload(std::string_view what, bool good);  // "keys", "tls"

  // The exposition text, format 0.0.4.
  std::string text(std::span<const ModelSnapshot> models, const ServerSnapshot& server);
  static std::string_view content_type();

 private:
  struct Books;
  std::unique_ptr<Books> books_;
};

}  // namespace weir::telemetry
