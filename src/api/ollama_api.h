// SPDX-License-Identifier: Apache-2.0
// Ollama's dialect: /api/chat and /api/generate (streams of JSON lines, which are the default), /api/embed, and what it tells about
// models. Options that only say how Ollama should use its machine are ignored; those that change the answer are obeyed or refused.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"
#include "api/embeddings.h"
#include "api/endpoints.h"
#include "api/generation_request.h"
#include "api/response_writer.h"
#include "base/clock.h"

namespace weir::api {

// "name:latest" is "name": what models are called here.
std::string_view ollama_model_name(std::string_view given);

struct OllamaRequest {
  GenerationRequest generation = {};
  std::string model_as_given = {};  // as answers repeat it
  bool chat = true;                 // of /api/chat; else of /api/generate
  // Without messages or a prompt the model is only loaded, or, with a keep_alive of 0, unloaded: answered by ollama_load_document().
  enum class Purpose { kAnswer, kLoad, kUnload } purpose = Purpose::kAnswer;
  std::optional<Duration> keep_alive = {};  // a wish; Duration::max() = for ever
};
ApiResult<OllamaRequest> parse_ollama_chat(std::string_view body);
ApiResult<OllamaRequest> parse_ollama_generate(std::string_view body);
std::unique_ptr<ResponseWriter> make_ollama_writer(const OllamaRequest& request);
std::string ollama_load_document(const OllamaRequest& request, std::int64_t unix_seconds);

// {"error": "…"}
std::string ollama_error_document(const ApiError& error);

struct OllamaEmbedRequest {
  EmbeddingRequest embedding = {};
  std::string model_as_given = {};
  bool one = false;  // of /api/embeddings: one text, one vector
};
ApiResult<OllamaEmbedRequest> parse_ollama_embed(std::string_view body);
ApiResult<OllamaEmbedRequest> parse_ollama_embeddings(std::string_view body);
std::string ollama_embed_document(const OllamaEmbedRequest& request, const EmbeddingAnswer& answer, Duration total);

// A model as Ollama's clients list it.
struct OllamaModel {
  std::string name = {};
  std::string digest = {};        // hexadecimal; whatever changes with the model
  std::string format = "gguf";    // of its file
  std::string family = {};        // "llama"
  std::string quantization = {};  // "Q4_K_M"
  std::string chat_template = {}, licence = {};
  std::int64_t bytes = 0, bytes_in_memory = 0, parameters = 0, context_length = 0, embedding_length = 0;
  std::int64_t modified = 0;                   // Unix seconds
  std::optional<std::int64_t> expires = {};    // when it leaves memory unless used; absent: never
  std::vector<std::string> capabilities = {};  // "completion", "tools", "thinking", "embedding"
};
std::string ollama_tags_document(std::span<const OllamaModel> models);
std::string ollama_ps_document(std::span<const OllamaModel> loaded);
std::string ollama_show_document(const OllamaModel& model);
std::string ollama_version_document(std::string_view version);
ApiResult<std::string> parse_ollama_show(std::string_view body);  // the model's name

std::span<const Endpoint> ollama_endpoints();

}  // namespace weir::api
