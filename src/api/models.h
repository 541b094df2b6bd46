// SPDX-License-Identifier: Apache-2.0
// Requests and answers about models themselves: which there are, loading and unloading them, and their adapters (in vLLM's shapes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"

namespace weir::api {

struct ModelCard {
  std::string id;
  std::int64_t created = 0;
  std::string root = {};  // the model itself; of an adapter the model it belongs to is `parent`
  std::string parent = {};
  std::int64_t max_model_len = 0;              // 0: not known before it is loaded
  std::string state = "loaded";                // "loaded", "loading", "unloaded", "failed"
  std::vector<std::string> capabilities = {};  // "completion", "chat", "embedding", "rerank"
};
std::string write_model(const ModelCard& card);
std::string write_models(const std::vector<ModelCard>& cards);

struct ModelRequest {
  std::string model;
};
ApiResult<ModelRequest> parse_model_request(std::string_view body);  // of load and unload
std::string write_model_state(std::string_view model, std::string_view state);

struct LoadAdapterRequest {
  std::string name;
  std::string path;      // serving decides which places are allowed
  std::string model;     // empty: the first model
  bool replace = false;  // one of the same name
};
ApiResult<LoadAdapterRequest> parse_load_adapter(std::string_view body);
struct UnloadAdapterRequest {
  std::string name;
  std::string model;
};
ApiResult<UnloadAdapterRequest> parse_unload_adapter(std::string_view body);

json::Object model_schema();
json::Object models_schema();
json::Object model_request_schema();
json::Object model_state_schema();
json::Object load_adapter_request_schema();
json::Object unload_adapter_request_schema();

}  // namespace weir::api
