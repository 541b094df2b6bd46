// SPDX-License-Identifier: Apache-2.0
// The rows of Ollama's dialect in the table of endpoints.
#include "api/fields.h"
#include "api/ollama_api.h"
#include "api/ollama_schemas.h"

namespace weir::api {
namespace {

json::Object error_schema() {
  return schema(R"({"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}})").as_object();
}

constexpr const char* kStatistics = R"("model": {"type": "string"}, "created_at": {"type": "string"}, "done": {"type": "boolean"},
  "done_reason": {"type": "string"}, "total_duration": {"type": "integer"}, "load_duration": {"type": "integer"},
  "prompt_eval_count": {"type": "integer"}, "prompt_eval_duration": {"type": "integer"}, "eval_count": {"type": "integer"},
  "eval_duration": {"type": "integer"}, "thinking": {"type": "string"}, "logprobs": {"type": "array"})";

json::Object chat_answer_schema() {
  return schema(std::string(R"({"type": "object", "required": ["model", "created_at", "message", "done"], "properties": {
    "message": {"type": "object", "required": ["role", "content"], "properties": {"role": {"enum": ["assistant"]},
      "content": {"type": "string"}, "thinking": {"type": "string"}, "tool_calls": {"type": "array"}}}, )") +
                kStatistics + "}}")
      .as_object();
}

json::Object generate_answer_schema() {
  return schema(std::string(R"({"type": "object", "required": ["model", "created_at", "response", "done"], "properties": {
    "response": {"type": "string"}, )") +
                kStatistics + "}}")
      .as_object();
}

json::Object models_schema() {
  return schema(R"({"type": "object", "required": ["models"], "properties": {"models": {"type": "array", "items": {"type": "object",
    "required": ["name", "model", "size", "digest", "details"], "properties": {"name": {"type": "string"}, "model": {"type": "string"},
    "size": {"type": "integer"}, "digest": {"type": "string"}, "details": {"type": "object"}}}}}})")
      .as_object();
}

json::Object show_schema() {
  return schema(R"({"type": "object", "required": ["details", "model_info", "capabilities"], "properties": {
    "details": {"type": "object"}, "model_info": {"type": "object"}, "capabilities": {"type": "array", "items": {"type": "string"}},
    "template": {"type": "string"}, "license": {"type": "string"}}})")
      .as_object();
}

json::Object version_schema() {
  return schema(R"({"type": "object", "required": ["version"], "properties": {"version": {"type": "string"}}})").as_object();
}

json::Object embed_schema() {
  return schema(R"({"type": "object", "required": ["model", "embeddings"], "properties": {"model": {"type": "string"},
    "embeddings": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
    "prompt_eval_count": {"type": "integer"}}})")
      .as_object();
}

json::Object embedding_schema() {
  return schema(R"({"type": "object", "required": ["embedding"], "properties": {
    "embedding": {"type": "array", "items": {"type": "number"}}}})")
      .as_object();
}

constexpr NamedSchema kError{"OllamaError", error_schema};
constexpr const char* kLines = "application/x-ndjson";
constexpr int kNotFound[] = {404};

}  // namespace

std::span<const Endpoint> ollama_endpoints() {
  static const Endpoint rows[] = {
      {.method = "POST",
       .path = "/api/chat",
       .operation = "ollamaChat",
       .handler = "ollama_chat",
       .tag = "Ollama",
       .summary = "Ollama's chat; a stream of JSON lines unless \"stream\" is false",
       .uses_model = true,
       .request = {"OllamaChatRequest", ollama_chat_request_schema},
       .response = {"OllamaChatAnswer", chat_answer_schema},
       .stream_media = kLines,
       .error = kError},
      {.method = "POST",
       .path = "/api/generate",
       .operation = "ollamaGenerate",
       .handler = "ollama_generate",
       .tag = "Ollama",
       .summary = "Ollama's answer to one prompt; a stream of JSON lines unless \"stream\" is false",
       .uses_model = true,
       .request = {"OllamaGenerateRequest", ollama_generate_request_schema},
       .response = {"OllamaGenerateAnswer", generate_answer_schema},
       .stream_media = kLines,
       .error = kError},
      {.method = "POST",
       .path = "/api/embed",
       .operation = "ollamaEmbed",
       .handler = "ollama_embed",
       .tag = "Ollama",
       .summary = "Vectors of texts",
       .uses_model = true,
       .request = {"OllamaEmbedRequest", ollama_embed_request_schema},
       .response = {"OllamaEmbeddings", embed_schema},
       .error = kError},
      {.method = "POST",
       .path = "/api/embeddings",
       .operation = "ollamaEmbeddings",
       .handler = "ollama_embeddings",
       .tag = "Ollama",
       .summary = "The vector of one text; older than /api/embed",
       .uses_model = true,
       .request = {"OllamaEmbeddingsRequest", ollama_embeddings_request_schema},
       .response = {"OllamaEmbedding", embedding_schema},
       .error = kError},
      {.method = "GET",
       .path = "/api/tags",
       .operation = "ollamaTags",
       .handler = "ollama_tags",
       .tag = "Ollama",
       .summary = "The models that are here",
       .response = {"OllamaModels", models_schema},
       .error = kError},
      {.method = "POST",
       .path = "/api/show",
       .operation = "ollamaShow",
       .handler = "ollama_show",
       .tag = "Ollama",
       .summary = "What is known of a model",
       .request = {"OllamaShowRequest", ollama_show_request_schema},
       .response = {"OllamaModel", show_schema},
       .error = kError,
       .more_errors = kNotFound},
      {.method = "GET",
       .path = "/api/ps",
       .operation = "ollamaPs",
       .handler = "ollama_ps",
       .tag = "Ollama",
       .summary = "The models in memory",
       .response = {"OllamaModels", models_schema},
       .error = kError},
      {.method = "GET",
       .path = "/api/version",
       .operation = "ollamaVersion",
       .handler = "ollama_version",
       .tag = "Ollama",
       .summary = "The server's version",
       .access = Access::kOpen,
       .response = {"OllamaVersion", version_schema},
       .error = kError},
  };
  return rows;
}

}  // namespace weir::api
