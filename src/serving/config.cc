// SPDX-License-Identifier: Apache-2.0
#include "serving/config.h"

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
  return engine;
}

}  // namespace weir::serving
