// SPDX-License-Identifier: Apache-2.0
// Schemas of Ollama's dialect for the OpenAPI document.
#pragma once

#include "base/json.h"

namespace weir::api {

json::Object ollama_chat_request_schema();
json::Object ollama_generate_request_schema();
json::Object ollama_embed_request_schema();
json::Object ollama_embeddings_request_schema();
json::Object ollama_show_request_schema();

}  // namespace weir::api
