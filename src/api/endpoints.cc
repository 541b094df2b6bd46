// SPDX-License-Identifier: Apache-2.0
#include "api/endpoints.h"

#include <algorithm>
#include <set>

#include "api/anthropic_messages.h"
#include "api/embeddings.h"
#include "api/fields.h"
#include "api/models.h"
#include "api/ollama_api.h"
#include "api/openai_chat.h"
#include "api/openai_completions.h"
#include "api/openai_responses.h"
#include "api/operations.h"
#include "api/rerank.h"
#include "api/tokenize.h"

namespace weir::api {
namespace {

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
constexpr int kNotFound[] = {404};
constexpr int kConflict[] = {404, 409};
constexpr int kNotReady[] = {503};

constexpr Endpoint rerank_row(std::string_view path, std::string_view operation) {
  return {.method = "POST",
          .path = path,
          .operation = operation,
          .handler = "rerank",
          .tag = "Vectors",
          .summary = "Documents by their relevance to a query",
          .uses_model = true,
          .request = {"RerankRequest", rerank_request_schema},
          .response = {"RerankResponse", rerank_response_schema}};
}

}  // namespace

json::Object openai_error_schema() {
  return schema(R"({"type": "object", "required": ["error"], "properties": {"error": {"type": "object",
    "required": ["message", "type", "param", "code"], "properties": {"message": {"type": "string"}, "type": {"type": "string"},
    "param": {"type": ["string", "null"]}, "code": {"type": ["string", "null"]}}}}})")
      .as_object();
}

std::span<const Endpoint> openai_endpoints() {
  static const Endpoint rows[] = {
      {.method = "POST",
       .path = "/v1/chat/completions",
       .operation = "createChatCompletion",
       .handler = "chat_completion",
       .tag = "Text",
       .summary = "An answer to a conversation",
       .uses_model = true,
       .request = {"ChatCompletionRequest", chat_request_schema},
       .response = {"ChatCompletion", chat_response_schema},
       .stream_media = "text/event-stream",
       .description = "With \"stream\": true the answer is a stream of Server-Sent Events, each a chat.completion.chunk, ended by [DONE]."},
      {.method = "POST",
       .path = "/v1/chat/completions/render",
       .operation = "renderChatCompletion",
       .handler = "render",
       .tag = "Tokens",
       .summary = "The prompt that a chat completion would give to the model",
       .uses_model = true,
       .request = {"ChatCompletionRequest", chat_request_schema},
       .response = {"RenderedChat", render_response_schema}},
      {.method = "POST",
       .path = "/v1/completions",
       .operation = "createCompletion",
       .handler = "completion",
       .tag = "Text",
       .summary = "A text goes on",
       .uses_model = true,
       .request = {"CompletionRequest", completion_request_schema},
       .response = {"Completion", completion_response_schema},
       .stream_media = "text/event-stream"},
      {.method = "POST",
       .path = "/v1/embeddings",
       .operation = "createEmbedding",
       .handler = "embedding",
       .tag = "Vectors",
       .summary = "Vectors of texts",
       .uses_model = true,
       .request = {"EmbeddingRequest", embedding_request_schema},
       .response = {"EmbeddingResponse", embedding_response_schema}},
      rerank_row("/v1/rerank", "rerank"),
      rerank_row("/rerank", "rerankAtRoot"),
      rerank_row("/v2/rerank", "rerankV2"),
      {.method = "POST",
       .path = "/tokenize",
       .operation = "tokenize",
       .handler = "tokenize",
       .tag = "Tokens",
       .summary = "The ids of a text or of a rendered chat",
       .uses_model = true,
       .request = {"TokenizeRequest", tokenize_request_schema},
       .response = {"TokenizeResponse", tokenize_response_schema}},
      {.method = "POST",
       .path = "/detokenize",
       .operation = "detokenize",
       .handler = "detokenize",
       .tag = "Tokens",
       .summary = "The text of ids",
       .uses_model = true,
       .request = {"DetokenizeRequest", detokenize_request_schema},
       .response = {"DetokenizeResponse", detokenize_response_schema}},
      {.method = "GET",
       .path = "/tokenizer_info",
       .operation = "getTokenizerInfo",
       .handler = "tokenizer_info",
       .tag = "Tokens",
       .summary = "Special tokens and the chat template, as tokenizer_config.json has them",
       .uses_model = true,
       .response = {"TokenizerInfo", tokenizer_info_schema}},
      {.method = "GET",
       .path = "/v1/models",
       .operation = "listModels",
       .handler = "models",
       .tag = "Models",
       .summary = "The models and adapters that requests may name",
       .response = {"ModelList", models_schema}},
      {.method = "GET",
       .path = "/v1/models/{model*}",
       .operation = "retrieveModel",
       .handler = "model",
       .tag = "Models",
       .summary = "One model",
       .response = {"Model", model_schema},
       .more_errors = kNotFound},
  };
  return rows;
}

std::span<const Endpoint> operation_endpoints() {
  static const Endpoint rows[] = {
      {.method = "GET",
       .path = "/health",
       .operation = "health",
       .handler = "health",
       .tag = "Operations",
       .summary = "As /health/ready",
       .access = Access::kOpen,
       .response = {"Health", health_schema},
       .error = {"Health", health_schema},
       .more_errors = kNotReady},
      {.method = "GET",
       .path = "/health/live",
       .operation = "healthLive",
       .handler = "health_live",
       .tag = "Operations",
       .summary = "Whether the process should go on; 503: it should be started anew",
       .access = Access::kOpen,
       .response = {"Health", health_schema},
       .error = {"Health", health_schema},
       .more_errors = kNotReady},
      {.method = "GET",
       .path = "/health/ready",
       .operation = "healthReady",
       .handler = "health_ready",
       .tag = "Operations",
       .summary = "Whether requests can be answered: models are loaded and their engines step",
       .access = Access::kOpen,
       .response = {"Health", health_schema},
       .error = {"Health", health_schema},
       .more_errors = kNotReady},
      {.method = "GET",
       .path = "/metrics",
       .operation = "metrics",
       .handler = "metrics",
       .tag = "Operations",
       .summary = "Prometheus' text format",
       .access = Access::kOpen,
       .response_media = "text/plain; version=0.0.4; charset=utf-8"},
      {.method = "GET",
       .path = "/version",
       .operation = "version",
       .handler = "version",
       .tag = "Operations",
       .summary = "The program's version",
       .access = Access::kOpen,
       .response = {"Version", version_schema}},
      {.method = "GET",
       .path = "/openapi.json",
       .operation = "openapi",
       .handler = "openapi",
       .tag = "Operations",
       .summary = "This document",
       .access = Access::kOpen,
       .response = {"OpenApiDocument", openapi_schema}},
      {.method = "POST",
       .path = "/v1/models/load",
       .operation = "loadModel",
       .handler = "load_model",
       .tag = "Models",
       .summary = "A model comes into memory",
       .access = Access::kAdmin,
       .uses_model = true,
       .request = {"ModelRequest", model_request_schema},
       .response = {"ModelState", model_state_schema},
       .more_errors = kConflict},
      {.method = "POST",
       .path = "/v1/models/unload",
       .operation = "unloadModel",
       .handler = "unload_model",
       .tag = "Models",
       .summary = "A model leaves memory once its requests are done",
       .access = Access::kAdmin,
       .uses_model = true,
       .request = {"ModelRequest", model_request_schema},
       .response = {"ModelState", model_state_schema},
       .more_errors = kConflict},
      {.method = "POST",
       .path = "/v1/load_lora_adapter",
       .operation = "loadLoraAdapter",
       .handler = "load_lora",
       .tag = "Models",
       .summary = "An adapter is added to a model",
       .access = Access::kAdmin,
       .uses_model = true,
       .request = {"LoadLoraRequest", load_adapter_request_schema},
       .response_media = kPlainText,
       .more_errors = kConflict},
      {.method = "POST",
       .path = "/v1/unload_lora_adapter",
       .operation = "unloadLoraAdapter",
       .handler = "unload_lora",
       .tag = "Models",
       .summary = "An adapter is taken from a model",
       .access = Access::kAdmin,
       .uses_model = true,
       .request = {"UnloadLoraRequest", unload_adapter_request_schema},
       .response_media = kPlainText,
       .more_errors = kConflict},
  };
  return rows;
}

std::span<const Endpoint> all_endpoints() {
  static const std::vector<Endpoint> all = [] {
    std::vector<Endpoint> rows;
    for (const auto part : {openai_endpoints(), responses_endpoints(), anthropic_endpoints(), ollama_endpoints(), operation_endpoints()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return all;
}

std::vector<int> error_statuses(const Endpoint& endpoint) {
  // From any request: bad HTTP, a method that is not the endpoint's, a fault, too many connections.
  std::set<int> statuses = {400, 405, 408, 413, 431, 500, 503};
  if (endpoint.access != Access::kOpen) statuses.insert({401, 403, 429});
  if (endpoint.request) statuses.insert(415);
  if (endpoint.uses_model) statuses.insert({404, 429, 504});
  statuses.insert(endpoint.more_errors.begin(), endpoint.more_errors.end());
  return {statuses.begin(), statuses.end()};
}

}  // namespace weir::api
