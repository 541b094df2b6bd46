// SPDX-License-Identifier: Apache-2.0
// What operators and clients ask about the server itself: health, metrics, the document of the API, models coming and going.
#include <fmt/core.h>

#include <array>
#include <ctime>

#include "api/models.h"
#include "api/ollama_api.h"
#include "api/openapi.h"
#include "api/operations.h"
#include "base/sha256.h"
#include "serving/service.h"

namespace weir::serving {
namespace {

constexpr Duration kUnloadPatience = std::chrono::seconds(30);

void reply_health(const Call& call, bool good, const std::vector<std::string>& reasons) {
  call.reply(http::Response::json(good ? 200 : 503, api::write_health(good, reasons)));
}

void health_ready(Service& service, const std::shared_ptr<Call>& call) {
  const HealthReport report = service.health();
  reply_health(*call, report.ready, report.reasons);
}

// Red when an engine has stood still for so long that only a new process helps.
void health_live(Service& service, const std::shared_ptr<Call>& call) {
  const std::vector<std::string> dead = service.dead();
  reply_health(*call, dead.empty(), dead);
}

std::string state_of(ModelPhase phase) {
  if (phase == ModelPhase::kReady || phase == ModelPhase::kLeaving) return "loaded";
  return std::string(phase_name(phase));
}

void metrics(Service& service, const std::shared_ptr<Call>& call) {
  if (!service.parts.observer || !service.parts.metrics)
    return call->fail({.status = 404, .type = "invalid_request_error", .code = "not_found", .message = "metrics are switched off"});
  std::vector<ModelState> states;
  std::vector<engine::ServiceStats> stats;
  const auto hosts = service.registry->hosts();
  stats.reserve(hosts.size());
  for (const ModelInfo& info : service.registry->list()) {
    ModelState state;
    state.name = info.spec.name;
    state.state = info.phase == ModelPhase::kLeaving ? "ready" : std::string(phase_name(info.phase));
    state.bytes = info.bytes;
    state.context = info.context;
    for (const AdapterSpec& adapter : info.spec.adapters) state.adapters.push_back(adapter.name);
    for (const auto& host : hosts) {
      if (host->spec().name != info.spec.name || host->service() == nullptr) continue;
      stats.push_back(host->service()->stats());
      state.stats = &stats.back();
      if (!stats.back().cache.pools.empty()) state.cache_blocks = stats.back().cache.pools.front().capacity;
      state.block_tokens = host->block_tokens();
      state.max_running = engine_options(service.options, info.spec).max_running;
    }
    states.push_back(std::move(state));
  }
  call->reply(service.parts.observer->metrics(states, service.http_stats()));
}

void version(Service& service, const std::shared_ptr<Call>& call) { call->reply_json(api::write_version(service.parts.version)); }

void openapi(Service& service, const std::shared_ptr<Call>& call) {
  static const std::string with_keys =
      boost::json::serialize(api::openapi_document(api::all_endpoints(), {.version = service.parts.version, .keys = true}));
  static const std::string without =
      boost::json::serialize(api::openapi_document(api::all_endpoints(), {.version = service.parts.version, .keys = false}));
  call->reply_json(service.parts.access ? with_keys : without);
}

// One card for each name that requests may use: models, aliases, adapters.
std::vector<api::ModelCard> cards(const Service& service) {
  std::vector<api::ModelCard> cards;
  for (const ModelInfo& info : service.registry->list()) {
    api::ModelCard card{.id = info.spec.name, .created = service.started, .root = info.spec.name};
    card.max_model_len = info.context;
    card.state = state_of(info.phase);
    card.capabilities = info.capabilities;
    cards.push_back(card);
    for (const std::string& alias : info.spec.aliases) {
      cards.push_back(card);
      cards.back().id = alias;
    }
    for (const AdapterSpec& adapter : info.spec.adapters) {
      cards.push_back(card);
      cards.back().id = adapter.name;
      cards.back().parent = info.spec.name;
    }
  }
  return cards;
}

void models(Service& service, const std::shared_ptr<Call>& call) {
  std::vector<api::ModelCard> allowed;
  for (api::ModelCard& card : cards(service))
    if (service.access->may_use(call->caller, card.id)) allowed.push_back(std::move(card));
  call->reply_json(api::write_models(allowed));
}

api::ApiError no_such_model(std::string_view name) {
  return {.status = 404,
          .type = "invalid_request_error",
          .code = "model_not_found",
          .message = fmt::format("The model `{}` does not exist here; GET /v1/models lists those that do", name),
          .param = "model"};
}

void model(Service& service, const std::shared_ptr<Call>& call) {
  const std::string_view name = call->request.parameter("model");
  for (const api::ModelCard& card : cards(service))
    if (card.id == name && service.access->may_use(call->caller, name)) return call->reply_json(api::write_model(card));
  call->fail(no_such_model(name));
}

void load_model(Service& service, const std::shared_ptr<Call>& call) {
  const auto request = api::parse_model_request(call->request.body);
  if (!request) return call->fail(request.error());
  service.with_model(call, request->model, [call, name = request->model](const std::shared_ptr<ModelLease>&) {
    call->reply_json(api::write_model_state(name, "loaded"));
  });
}

void unload_model(Service& service, const std::shared_ptr<Call>& call) {
  const auto request = api::parse_model_request(call->request.body);
  if (!request) return call->fail(request.error());
  service.registry->unload(request->model, kUnloadPatience, [call, name = request->model](api::ApiResult<void> done) {
    if (!done) return call->fail(done.error());
    call->reply_json(api::write_model_state(name, "unloaded"));
  });
}

void load_lora(Service& service, const std::shared_ptr<Call>& call) {
  const auto request = api::parse_load_adapter(call->request.body);
  if (!request) return call->fail(request.error());
  // No path of the file system can be reached through a request: only what the operator has put into the adapters' folder.
  const std::filesystem::path& folder = service.options.adapter_folder;
  const std::filesystem::path wanted(request->path);
  if (folder.empty())
    return call->fail(api::bad_request(
        "lora_path", "this server loads no adapters at run time: it was started without a folder of adapters", "not_allowed"));
  const std::filesystem::path name = wanted.is_absolute() ? wanted.lexically_relative(folder) : wanted.lexically_normal();
  if (name.empty() || name.is_absolute() || name.begin()->string() == ".." || name.filename() == "." ||
      request->path.find('\0') != std::string::npos)
    return call->fail(api::bad_request("lora_path", "should be the name of an adapter in the server's folder of adapters", "not_allowed"));
  std::error_code error;
  const auto real = std::filesystem::canonical(folder / name, error);
  const auto root = error ? std::filesystem::path() : std::filesystem::canonical(folder, error);
  if (error || real.lexically_relative(root).empty() || *real.lexically_relative(root).begin() == "..")
    return call->fail(api::bad_request("lora_path", "there is no such adapter in the server's folder of adapters", "not_found"));
  // With the model in memory, so that what does not fit it is refused now and not with the model's next start.
  service.with_model(call, request->model, [&service, call, real, request = *request](const std::shared_ptr<ModelLease>& lease) {
    auto done = service.registry->load_adapter(lease->model(), {request.name, real}, request.replace);
    if (!done) return call->fail(done.error());
    call->reply(http::Response::text(200, fmt::format("Success: LoRA adapter '{}' added successfully.", request.name)));
  });
}

void unload_lora(Service& service, const std::shared_ptr<Call>& call) {
  const auto request = api::parse_unload_adapter(call->request.body);
  if (!request) return call->fail(request.error());
  auto done = service.registry->unload_adapter(request->name);
  if (!done) return call->fail(done.error());
  call->reply(http::Response::text(200, fmt::format("Success: LoRA adapter '{}' removed successfully.", request->name)));
}

// Ollama's view of the models.
std::vector<api::OllamaModel> ollama_models(const Service& service, const Caller& caller, bool loaded_only) {
  std::vector<api::OllamaModel> models;
  const auto hosts = service.registry->hosts();
  for (const ModelInfo& info : service.registry->list()) {
    const bool in_memory = info.phase == ModelPhase::kReady || info.phase == ModelPhase::kLeaving;
    if ((loaded_only && !in_memory) || !service.access->may_use(caller, info.spec.name)) continue;
    api::OllamaModel model;
    model.name = info.spec.name;
    model.digest = sha256_of(info.spec.name + "\n" + info.spec.source);
    model.modified = service.started;
    model.capabilities = info.capabilities;
    model.bytes_in_memory = static_cast<std::int64_t>(info.bytes);
    for (const auto& host : hosts) {
      if (host->spec().name != info.spec.name) continue;
      const model::Traits& traits = host->loaded().model->traits();
      model.bytes = static_cast<std::int64_t>(host->loaded().model->weight_bytes());
      model.family = traits.family;
      model.context_length = host->context() > 0 ? host->context() : traits.max_context;
      model.embedding_length = traits.hidden;
      if (host->loaded().tokenizer) model.chat_template = host->loaded().tokenizer->chat_template.value_or("");
    }
    models.push_back(std::move(model));
  }
  return models;
}

void ollama_tags(Service& service, const std::shared_ptr<Call>& call) {
  call->reply_json(api::ollama_tags_document(ollama_models(service, call->caller, false)));
}

void ollama_ps(Service& service, const std::shared_ptr<Call>& call) {
  call->reply_json(api::ollama_ps_document(ollama_models(service, call->caller, true)));
}

void ollama_show(Service& service, const std::shared_ptr<Call>& call) {
  const auto name = api::parse_ollama_show(call->request.body);
  if (!name) return call->fail(name.error());
  const auto target = service.registry->find(*name);
  for (const api::OllamaModel& model : ollama_models(service, call->caller, false))
    if (target && model.name == target->model) return call->reply_json(api::ollama_show_document(model));
  call->fail(no_such_model(*name));
}

void ollama_version(Service& service, const std::shared_ptr<Call>& call) {
  call->reply_json(api::ollama_version_document(service.parts.version));
}

constexpr std::array kRows{
    HandlerRow{"health", health_ready, true},     HandlerRow{"health_ready", health_ready, true},
    HandlerRow{"health_live", health_live, true}, HandlerRow{"metrics", metrics},
    HandlerRow{"version", version, true},         HandlerRow{"openapi", openapi},
    HandlerRow{"models", models, true},           HandlerRow{"model", model, true},
    HandlerRow{"load_model", load_model},         HandlerRow{"unload_model", unload_model},
    HandlerRow{"load_lora", load_lora},           HandlerRow{"unload_lora", unload_lora},
    HandlerRow{"ollama_tags", ollama_tags},       HandlerRow{"ollama_show", ollama_show},
    HandlerRow{"ollama_ps", ollama_ps},           HandlerRow{"ollama_version", ollama_version, true},
};

}  // namespace

std::span<const HandlerRow> operation_handlers() { return kRows; }

}  // namespace weir::serving
