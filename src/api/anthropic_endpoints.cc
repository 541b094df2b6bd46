// SPDX-License-Identifier: Apache-2.0
// Rows of Anthropic's dialect in the table of endpoints, and what it answers beside messages: counts and errors.
#include "api/anthropic_messages.h"
#include "api/anthropic_schemas.h"
#include "api/fields.h"
#include "api/json_text.h"
#include "api/openai_answer.h"

namespace weir::api {
namespace {

std::string_view error_type(int status) {
  switch (status) {
    case 400: return "invalid_request_error";
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503:
    case 529: return "overloaded_error";
    case 504: return "timeout_error";
    default: return status >= 400 && status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

std::string anthropic_error_document(const ApiError& error) {
  JsonText out;
  out.open_object().member("type", "error").key("error").open_object();
  out.member("type", error_type(error.status)).member("message", error.message);
  return out.close_object().close_object().take();
}

std::string anthropic_count_document(std::int64_t input_tokens) {
  return JsonText().open_object().member("input_tokens", input_tokens).close_object().take();
}

json::Object anthropic_message_schema() {
  json::Object out =
      schema(R"({"type": "object", "required": ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
    "properties": {"id": {"type": "string"}, "type": {"enum": ["message"]}, "role": {"enum": ["assistant"]},
    "model": {"type": "string"},
    "content": {"type": "array", "items": {"type": "object", "required": ["type"], "properties": {
      "type": {"enum": ["text", "thinking", "tool_use"]}, "text": {"type": "string"}, "thinking": {"type": "string"},
      "id": {"type": "string"}, "name": {"type": "string"}, "input": {"type": "object"}}}},
    "stop_reason": {"enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "model_context_window_exceeded", null]},
    "stop_sequence": {"type": ["string", "null"]},
    "usage": {"type": "object", "required": ["input_tokens", "output_tokens"], "properties": {
      "input_tokens": {"type": "integer", "minimum": 0}, "output_tokens": {"type": "integer", "minimum": 0},
      "cache_creation_input_tokens": {"type": "integer"}, "cache_read_input_tokens": {"type": "integer"}}}}})")
          .as_object();
  out["properties"].as_object()["timings"] = timings_schema();
  return out;
}

json::Object anthropic_count_schema() {
  return schema(R"({"type": "object", "required": ["input_tokens"], "properties": {"input_tokens": {"type": "integer", "minimum": 0}}})")
      .as_object();
}

json::Object anthropic_error_schema() {
  return schema(R"({"type": "object", "required": ["type", "error"], "properties": {"type": {"enum": ["error"]},
    "error": {"type": "object", "required": ["type", "message"], "properties": {"type": {"type": "string"},
      "message": {"type": "string"}}}}})")
      .as_object();
}

std::span<const Endpoint> anthropic_endpoints() {
  static const Endpoint rows[] = {
      {.method = "POST",
       .path = "/v1/messages",
       .operation = "createMessage",
       .handler = "anthropic_messages",
       .tag = "Anthropic",
       .summary = "Anthropic's messages",
       .uses_model = true,
       .request = {"AnthropicMessageRequest", anthropic_message_request_schema},
       .response = {"AnthropicMessage", anthropic_message_schema},
       .stream_media = "text/event-stream",
       .error = {"AnthropicError", anthropic_error_schema}},
      {.method = "POST",
       .path = "/v1/messages/count_tokens",
       .operation = "countMessageTokens",
       .handler = "anthropic_count_tokens",
       .tag = "Anthropic",
       .summary = "How many tokens a message's prompt has",
       .uses_model = true,
       .request = {"AnthropicCountRequest", anthropic_count_request_schema},
       .response = {"AnthropicCount", anthropic_count_schema},
       .error = {"AnthropicError", anthropic_error_schema}},
  };
  return rows;
}

}  // namespace weir::api
