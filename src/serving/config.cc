// SPDX-License-Identifier: Apache-2.0
#include "serving/config.h"

namespace weir::serving {

engine::EngineOptions engine_options(const ServeOptions& options, const ModelSpec& model) {
  engine::EngineOptions engine = options.engine;
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
