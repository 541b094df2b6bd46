// SPDX-License-Identifier: Apache-2.0
// The seam between the server and whoever counts: metrics, spans, access log. The server tells what happened in plain structs; none of
// the calls may block, and all may come from several threads at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/output.h"
#include "base/clock.h"
#include "engine/service_stats.h"
#include "http/message.h"
#include "http/server.h"

namespace weir::serving {

// One request for text, vectors or scores, at its end.
struct RequestRecord {
  std::uint64_t http_id = 0;  // of the AccessRecord
  std::string id;             // as in the answer and in X-Request-Id
  std::string endpoint;       // "/v1/chat/completions"
  std::string model;          // the model's name here, not an alias; empty when it was not found
  std::string adapter;
  std::string caller;       // the key's name
  std::string traceparent;  // as received, or empty
  int status = 0;           // as answered; 200 for streams that broke afterwards
  std::string error_code;   // empty: all went well
  bool streamed = false, cancelled = false;
  std::int32_t answers = 1;
  std::vector<std::string> finish_reasons;  // one for each answer: "stop", "length", "tool_calls", "cancelled", "error"
  api::Usage usage;
  api::Timings timings;
  std::int64_t max_tokens = 0;  // as asked for; 0 = none
  float temperature = 0, top_p = 1;
  TimePoint received{};               // its first byte
  std::vector<Duration> token_times;  // of the first answer, since `received`: the gaps are the inter-token latencies
  std::string tenant = {};
  std::string prompt = {}, answer = {};  // their texts, only for an observer that wants_text()
};

struct ModelState {
  std::string name;
  std::string state;  // "ready", "loading", "unloaded", "failed"
  std::uint64_t bytes = 0;
  const engine::ServiceStats* stats = nullptr;  // null: no engine
  std::int64_t block_tokens = 0, cache_blocks = 0, context = 0, max_running = 0;
  std::vector<std::string> adapters = {};  // loaded and ready
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Before the answer's end is given to the responder, so that on_http() of the same request follows.
  virtual void on_request(const RequestRecord& record) = 0;
  // From an engine's thread, once a step.
  virtual void on_step(std::string_view model, const engine::StepRecord& step) = 0;
  // A model was brought to memory or left it.
  virtual void on_load(std::string_view model, bool loaded, Duration took) = 0;
  // Of the HTTP server, at the end of each request of any kind.
  virtual void on_http(const http::AccessRecord& record) = 0;
  // Whether RequestRecord is to hold texts: an operator asked for them in the access log.
  virtual bool wants_text() const { return false; }
  // The text of /metrics. `models`: as they are now.
  virtual http::Response metrics(const std::vector<ModelState>& models, const http::ServerStats& http) = 0;
};

}  // namespace weir::serving
