// SPDX-License-Identifier: Apache-2.0
#include "serving/tool_messages.h"

#include "api/output_format.h"

namespace weir::serving {
namespace {

// {"name": …, "arguments": {…}}, one on each line.
std::string calls_as_text(const json::Array& calls) {
  std::string text;
  for (const json::Value& call : calls) {
    const json::Value* function = call.is_object() ? call.get_object().if_contains("function") : nullptr;
    if (function == nullptr || !function->is_object()) continue;
    if (!text.empty()) text += '\n';
    const auto part = [&](const char* key) {
      const json::Value* value = function->get_object().if_contains(key);
      return value ? *value : json::Value(nullptr);
    };
    text += boost::json::serialize(json::Object{{"name", part("name")}, {"arguments", part("arguments")}});
  }
  return text;
}

void write_calls(json::Object& message) {
  const json::Value* calls = message.if_contains("tool_calls");
  if (calls == nullptr || !calls->is_array()) return;
  const std::string text = calls_as_text(calls->get_array());
  json::Value& content = message["content"];
  if (content.is_string() && !content.get_string().empty()) {
    content.get_string().append("\n").append(text);
  } else if (!content.is_array()) {
    content = text;
  } else {
    content.get_array().push_back(json::Object{{"type", "text"}, {"text", "\n" + text}});
  }
  message.erase("tool_calls");
}

void add_to_system(json::Array& messages, const std::string& text) {
  if (!messages.empty() && messages.front().is_object()) {
    json::Object& first = messages.front().get_object();
    const json::Value* role = first.if_contains("role");
    json::Value* content = first.if_contains("content");
    if (role && role->is_string() && role->get_string() == "system" && content && content->is_string()) {
      content->get_string().append("\n\n").append(text);
      return;
    }
  }
  messages.insert(messages.begin(), json::Object{{"role", "system"}, {"content", text}});
}

}  // namespace

void write_tools_as_text(api::GenerationRequest& request) {
  for (json::Value& message : request.messages)
    if (message.is_object()) write_calls(message.get_object());
  if (const std::string text = api::tool_prompt(request); !text.empty()) add_to_system(request.messages, text);
}

}  // namespace weir::serving
