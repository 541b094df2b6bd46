// SPDX-License-Identifier: Apache-2.0
#include "serving/config.h"

#include <algorithm>
#include <set>

namespace weir::serving {

engine::EngineOptions engine_options(const ServeOptions& options, const ModelSpec& model) {
  const engine::EngineOptions& common = options.engine;
  engine::EngineOptions engine;
  engine.context = common.context;
  engine.cache_tokens = common.cache_tokens;
  engine.cache_bytes = common.cache_bytes;
  engine.kv_type = common.kv_type;
  engine.max_running = common.max_running;
  engine.max_waiting = common.max_waiting;
  engine.max_wait = common.max_wait;
  engine.token_budget = common.token_budget;
  engine.policy = common.policy;
  engine.prefix_cache = common.prefix_cache;
  engine.stall_limit = common.stall_limit;
  engine.tier_folder = common.tier_folder;
  engine.tier_bytes = common.tier_bytes;
  engine.speculation = common.speculation;
  engine.measure = common.measure;
  if (model.context) engine.context = *model.context;
  if (model.cache_tokens || model.cache_bytes) {  // the one given replaces both
    engine.cache_tokens = model.cache_tokens.value_or(0);
    engine.cache_bytes = model.cache_bytes.value_or(0);
  }
  if (model.kv_type) engine.kv_type = model.kv_type;
  if (model.max_running) engine.max_running = *model.max_running;
  if (model.policy) engine.policy = *model.policy;
  if (engine.policy == "auto") engine.policy = options.keyed ? "fair-share" : "first-come";
  return engine;
}

namespace {

// Names that clients use must mean one thing each.
Status check_names(const std::vector<ModelSpec>& models) {
  std::set<std::string_view> names;
  for (const ModelSpec& model : models) {
    std::vector<std::string_view> own = {model.name};
    own.insert(own.end(), model.aliases.begin(), model.aliases.end());
    for (const std::string_view name : own) {
      if (name.empty()) return fail(ErrorCode::kInvalidArgument, "models: the model '{}' has an empty name", model.name);
      if (!names.insert(name).second) return fail(ErrorCode::kInvalidArgument, "models: two models are called '{}'", name);
    }
    std::set<std::string_view> adapters;
    for (const AdapterSpec& adapter : model.adapters)
      if (!adapters.insert(adapter.name).second)
        return fail(ErrorCode::kInvalidArgument, "models: '{}' has two adapters called '{}'", model.name, adapter.name);
  }
  return {};
}

Status check_tls(const http::TlsFiles& tls) {
  if (tls.certificate.empty() != tls.key.empty())
    return fail(ErrorCode::kInvalidArgument, "tls.certificate and tls.key belong together: give both or none");
  if (tls.require_client_certificate && tls.client_ca.empty())
    return fail(ErrorCode::kInvalidArgument, "tls.require_client_certificate needs tls.client_ca to verify them against");
  if (!tls.client_ca.empty() && tls.certificate.empty())
    return fail(ErrorCode::kInvalidArgument, "tls.client_ca needs tls.certificate and tls.key");
  return {};
}

Status check_engine(const engine::EngineOptions& engine, std::string_view name) {
  if (engine.token_budget < engine.max_running)
    return fail(ErrorCode::kInvalidArgument, "{}: engine.token_budget ({}) should be at least max_running ({})", name, engine.token_budget,
                engine.max_running);
  return {};
}

}  // namespace

Status check_config(const ServeConfig& config) {
  const ServeOptions& serve = config.serve;
  if (serve.listen.empty()) return fail(ErrorCode::kInvalidArgument, "listen: there should be an address");
  WEIR_TRY(check_names(serve.models));
  WEIR_TRY(check_tls(serve.tls));
  WEIR_TRY(check_engine(serve.engine, "engine"));
  for (const ModelSpec& model : serve.models) WEIR_TRY(check_engine(engine_options(serve, model), model.name));
  if (serve.default_timeout > serve.max_timeout)
    return fail(ErrorCode::kInvalidArgument, "default_timeout should not be longer than max_timeout");
  if (serve.limits.max_total_body_bytes < serve.max_body_bytes)
    return fail(ErrorCode::kInvalidArgument, "limits.max_total_body_bytes should not be smaller than limits.max_body_bytes");
  if (serve.cors.allow_credentials && std::ranges::find(serve.cors.origins, "*") != serve.cors.origins.end())
    return fail(ErrorCode::kInvalidArgument, "cors.allow_credentials needs cors.origins that are named: browsers refuse it with \"*\"");
  if (config.metrics_need_key && config.keys_file.empty())
    return fail(ErrorCode::kInvalidArgument, "auth.metrics_need_key needs auth.keys_file");
  if (config.spans.max_queued < config.spans.batch)
    return fail(ErrorCode::kInvalidArgument, "tracing.max_queued should hold at least one tracing.batch");
  return {};
}

}  // namespace weir::serving
