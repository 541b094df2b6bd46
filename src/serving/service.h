// SPDX-License-Identifier: Apache-2.0
// What all handlers of a server share, and the tables of them: an endpoint names its handler, the server looks it up here.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string_view>

#include "serving/call.h"
#include "serving/event_pump.h"
#include "serving/generation_session.h"
#include "serving/model_registry.h"
#include "serving/server.h"
#include "serving/work_pool.h"

namespace weir::api {
class ResponseStore;
}

namespace weir::serving {

struct Service {
  ServeOptions options;
  ServerParts parts;
  std::shared_ptr<Access> access;
  SessionSettings settings;
  std::atomic<std::int64_t> sessions{0};
  std::atomic<bool> draining{false}, loaded{false};
  std::shared_ptr<api::ResponseStore> responses;
  std::int64_t started = 0;  // Unix seconds
  EventPump pump;
  std::unique_ptr<WorkPool> pool;
  std::shared_ptr<ModelRegistry> registry;
  std::function<HealthReport()> health;
  std::function<std::vector<std::string>()> dead;  // engines that have stood still for so long that they will not move again
  std::function<http::ServerStats()> http_stats;

  // Runs on a preparing thread with the model at hand; errors are answered here. `name`: as the client gave it, perhaps empty.
  using WithModel = std::function<void(std::shared_ptr<ModelLease>)>;
  void with_model(const std::shared_ptr<Call>& call, const std::string& name, WithModel then);
  // Asks the caller's limits. What is left of them then stands in the headers of the answer, whether it is one or a refusal.
  api::ApiResult<std::unique_ptr<Ticket>> admit(Call& call, std::int64_t prompt_tokens, std::int64_t max_tokens);
};

using Handler = void (*)(Service& service, const std::shared_ptr<Call>& call);
struct HandlerRow {
  std::string_view name;
  Handler handle;
  bool at_once = false;  // on the io thread: for what takes no time
};
std::span<const HandlerRow> text_handlers();       // generated text, in all dialects
std::span<const HandlerRow> vector_handlers();     // embeddings, ranks
std::span<const HandlerRow> token_handlers();      // tokenizers, rendered prompts
std::span<const HandlerRow> operation_handlers();  // health, models, metrics

// Tells the observer of a request that is no session's.
void observe(Service& service, const Call& call, RequestRecord record, int status, const std::string& error_code);

}  // namespace weir::serving
