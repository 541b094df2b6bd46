// SPDX-License-Identifier: Apache-2.0
#include "text/messages.h"

namespace weir::text {
namespace {

// OpenAI's API has the arguments of a call as JSON text; templates print or walk them as an object.
void parse_arguments(json::Object& call) {
  json::Value* function = call.if_contains("function");
  json::Object& holder = function && function->is_object() ? function->get_object() : call;
  json::Value* arguments = holder.if_contains("arguments");
  if (!arguments || !arguments->is_string()) return;
  auto parsed = json::parse(arguments->get_string(), "arguments");
  if (parsed && parsed->is_object()) *arguments = std::move(*parsed);
}

json::Array with_parsed_arguments(json::Array calls) {
  for (json::Value& call : calls)
    if (call.is_object()) parse_arguments(call.get_object());
  return calls;
}

}  // namespace

Messages& Messages::add(std::string_view role, std::string_view content) {
  messages_.push_back(json::Object{{"role", role}, {"content", content}});
  return *this;
}

Messages& Messages::assistant_calls(std::string_view content, const json::Array& calls) {
  json::Object message{{"role", "assistant"}};
  if (!content.empty()) message["content"] = content;
  message["tool_calls"] = with_parsed_arguments(calls);
  messages_.push_back(std::move(message));
  return *this;
}

Messages& Messages::tool(std::string_view name, std::string_view call_id, std::string_view content) {
  messages_.push_back(json::Object{{"role", "tool"}, {"name", name}, {"tool_call_id", call_id}, {"content", content}});
  return *this;
}

void Messages::pop() {
  if (!messages_.empty()) messages_.pop_back();
}

Result<json::Array> normalized_messages(const json::Value& messages) {
  if (!messages.is_array()) return fail(ErrorCode::kInvalidArgument, "messages: should be an array");
  json::Array result;
  for (std::size_t i = 0; i < messages.get_array().size(); ++i) {
    const json::Value& message = messages.get_array()[i];
    if (!message.is_object()) return fail(ErrorCode::kInvalidArgument, "messages[{}]: should be an object", i);
    const json::Value* role = json::find(message.get_object(), "role");
    if (!role || !role->is_string()) return fail(ErrorCode::kInvalidArgument, "messages[{}].role: should be a string", i);
    json::Object kept;
    for (const auto& [key, value] : message.get_object())
      if (!value.is_null())
        kept[key] = key == "tool_calls" && value.is_array() ? json::Value(with_parsed_arguments(value.get_array())) : value;
    result.push_back(std::move(kept));
  }
  return result;
}

}  // namespace weir::text
