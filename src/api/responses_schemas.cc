// SPDX-License-Identifier: Apache-2.0
#include "api/responses_schemas.h"

#include "api/fields.h"
#include "api/openai_answer.h"
#include "api/openai_responses.h"

namespace weir::api {

json::Value responses_format_schema() {
  return schema(R"({"anyOf": [
    {"type": "object", "properties": {"type": {"enum": ["text", "json_object"]}}, "required": ["type"], "additionalProperties": false},
    {"type": "object", "properties": {"type": {"enum": ["json_schema"]}, "name": {"type": "string"},
      "schema": {"type": "object", "description": "A keyword that cannot be enforced is an error."},
      "strict": {"type": ["boolean", "null"]}, "description": {"type": ["string", "null"]}},
     "required": ["type", "name", "schema"], "additionalProperties": false}]})");
}

json::Value responses_tool_choice_schema() {
  return schema(R"({"anyOf": [{"enum": ["none", "auto", "required"]},
    {"type": "object", "properties": {"type": {"enum": ["function"]}, "name": {"type": "string"}}, "required": ["type", "name"],
     "additionalProperties": false},
    {"type": "object", "properties": {"type": {"enum": ["allowed_tools"]}, "mode": {"enum": ["auto", "required"]},
      "tools": {"type": "array", "minItems": 1, "items": {"type": "object", "properties": {"type": {"enum": ["function"]},
        "name": {"type": "string"}}, "required": ["type", "name"], "additionalProperties": false}}},
     "required": ["type", "mode", "tools"], "additionalProperties": false}]})");
}

json::Value responses_include_schema() {
  return schema(R"({"type": "array", "items": {"enum": ["message.output_text.logprobs", "reasoning.encrypted_content",
    "file_search_call.results", "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url",
    "computer_call_output.output.image_url", "code_interpreter_call.outputs"]}})");
}

json::Object response_schema() {
  json::Object out =
      schema(R"({"type": "object", "required": ["id", "object", "created_at", "status", "model", "output", "parallel_tool_calls",
        "tool_choice", "tools"], "properties": {
    "id": {"type": "string"}, "object": {"enum": ["response"]}, "created_at": {"type": "integer"},
    "completed_at": {"type": ["integer", "null"]},
    "status": {"enum": ["in_progress", "completed", "incomplete", "failed", "cancelled"]}, "model": {"type": "string"},
    "error": {"type": ["object", "null"], "required": ["code", "message"], "properties": {"code": {"type": "string"},
      "message": {"type": "string"}}},
    "incomplete_details": {"type": ["object", "null"], "properties": {"reason": {"type": "string"}}},
    "output": {"type": "array", "items": {"type": "object", "required": ["type", "id", "status"], "properties": {
      "type": {"enum": ["message", "reasoning", "function_call"]}, "id": {"type": "string"},
      "status": {"enum": ["in_progress", "completed", "incomplete"]}}}},
    "usage": {"type": ["object", "null"], "required": ["input_tokens", "output_tokens", "total_tokens"], "properties": {
      "input_tokens": {"type": "integer", "minimum": 0}, "output_tokens": {"type": "integer", "minimum": 0},
      "total_tokens": {"type": "integer", "minimum": 0}}},
    "instructions": {"type": ["string", "null"]}, "metadata": {"type": "object"}, "parallel_tool_calls": {"type": "boolean"},
    "previous_response_id": {"type": ["string", "null"]}, "store": {"type": "boolean"},
    "temperature": {"type": ["number", "null"]}, "top_p": {"type": ["number", "null"]},
    "max_output_tokens": {"type": ["integer", "null"]}, "truncation": {"enum": ["auto", "disabled"]},
    "tools": {"type": "array", "items": {"type": "object"}}}})")
          .as_object();
  out["properties"].as_object()["timings"] = timings_schema();
  return out;
}

json::Object deleted_response_schema() {
  return schema(R"({"type": "object", "required": ["id", "object", "deleted"], "properties": {"id": {"type": "string"},
    "object": {"enum": ["response"]}, "deleted": {"enum": [true]}}})")
      .as_object();
}

json::Object input_items_schema() {
  return schema(R"({"type": "object", "required": ["object", "data", "has_more"], "properties": {"object": {"enum": ["list"]},
    "data": {"type": "array", "items": {"type": "object", "required": ["type", "id"]}}, "first_id": {"type": ["string", "null"]},
    "last_id": {"type": ["string", "null"]}, "has_more": {"type": "boolean"}}})")
      .as_object();
}

}  // namespace weir::api
