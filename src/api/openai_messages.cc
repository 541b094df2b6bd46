// SPDX-License-Identifier: Apache-2.0
#include "api/openai_messages.h"

#include <fmt/core.h>

#include <map>

#include "api/tool_call_fields.h"
#include "text/messages.h"

namespace weir::api {
namespace {

using json::Value;

struct Part {
  std::string text;
};

// {"type": kind, kind: the text}
Fields<Part> make_part_fields(std::string_view kind) {
  Fields<Part> f;
  f.value("type", json::Object{{"enum", json::Array{kind}}}, [](const Value&, const Path&, Part&) -> ApiStatus { return {}; }).required();
  f.text(kind, [](Part& p, std::string v) { p.text = std::move(v); }).required();
  f.ignore({"cache_control", "annotations", "prompt_cache_breakpoint"});
  return f;
}

const Fields<Part>& part_fields(std::string_view kind) {
  static const Fields<Part> text = make_part_fields("text"), refusal = make_part_fields("refusal");
  return kind == "text" ? text : refusal;
}

ApiResult<std::string> read_part(const Value& value, const Path& path) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  // The type first: of a picture nothing else should be complained about.
  WEIR_ASSIGN(const Value* type, require(*object, "type", path));
  const Path place(path, "type");
  for (const char* kind : {"image_url", "input_image", "image", "input_audio", "audio", "file", "input_file", "video_url", "image_embeds"})
    if (*type == Value(kind))
      return refuse(place, fmt::format("is '{}', but this server's models read text only", kind), "unsupported_content");
  WEIR_ASSIGN(const std::string_view kind, read_name(*type, place, {"text", "refusal"}));
  Part part;
  WEIR_TRY(part_fields(kind).read(*object, path, part));
  return std::move(part.text);
}

struct Call {
  std::string id, name;
  Value arguments = "{}";
};

const Fields<Call>& function_fields() {
  static const Fields<Call> fields = [] {
    Fields<Call> f;
    f.text("name", [](Call& c, std::string v) { c.name = std::move(v); }).required();
    f.value("arguments", schema(R"({"anyOf": [{"type": "string"}, {"type": "object"}]})"),
            [](const Value& value, const Path& path, Call& c) -> ApiStatus {
              if (!value.is_string() && !value.is_object()) return wrong_type(path, "JSON text or an object", value);
              c.arguments = value;
              return {};
            });
    f.ignore({"parsed_arguments"});
    return f;
  }();
  return fields;
}

const Fields<Call>& call_fields() {
  static const Fields<Call> fields = [] {
    Fields<Call> f = tool_call_fields(function_fields());
    f.ignore({"index", "extra_content", "provider_specific_fields"});
    return f;
  }();
  return fields;
}

struct Message {
  std::string role, content, reasoning, name, tool_call_id;
  bool has_content = false;
  std::vector<Call> calls;
};

ApiStatus read_calls(const Value& value, const Path& path, Message& message) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  for (std::size_t i = 0; i < array->size(); ++i) {
    Call call;
    WEIR_TRY(call_fields().read((*array)[i], Path(path, i), call));
    message.calls.push_back(std::move(call));
  }
  return {};
}

ApiStatus read_role(const Value& value, const Path& path, Message& message) {
  WEIR_ASSIGN(const std::string_view role, read_name(value, path, {"system", "developer", "user", "assistant", "tool"}));
  message.role = role == "developer" ? "system" : role;
  return {};
}

ApiStatus read_message_content(const Value& value, const Path& path, Message& message) {
  WEIR_ASSIGN(std::string text, read_content(value, path));
  message.content = std::move(text);
  message.has_content = true;
  return {};
}

Value content_schema() {
  const json::Object parts{{"type", "array"},
                           {"items", {{"anyOf", json::Array{part_fields("text").schema(), part_fields("refusal").schema()}}}}};
  return json::Object{{"anyOf", {json::Object{{"type", "string"}}, parts}}};
}

const Fields<Message>& message_fields() {
  static const Fields<Message> fields = [] {
    Fields<Message> f;
    f.value("role", schema(R"({"enum": ["system", "developer", "user", "assistant", "tool"]})"), read_role).required();
    f.value("content", content_schema(), read_message_content);
    f.text("name", [](Message& m, std::string v) { m.name = std::move(v); });
    f.text("tool_call_id", [](Message& m, std::string v) { m.tool_call_id = std::move(v); });
    f.value("tool_calls", json::Object{{"type", "array"}, {"items", call_fields().schema()}}, read_calls);
    f.text("reasoning_content", [](Message& m, std::string v) { m.reasoning = std::move(v); });
    f.text("reasoning", [](Message& m, std::string v) { m.reasoning = std::move(v); });
    f.text("refusal", [](Message& m, std::string v) {
      if (m.content.empty()) m.content = std::move(v);
    });
    f.only("function_call", nullptr, "is no longer supported: use 'tool_calls'");
    f.only("audio", nullptr, "is not supported: this server's models read text only");
    // What clients send back of the answers they got.
    f.ignore({"id", "annotations", "parsed", "status", "cache_control", "provider_specific_fields", "thinking_blocks", "reasoning_details",
              "images"});
    return f;
  }();
  return fields;
}

ApiStatus check(const Message& message, const Path& path) {
  const bool assistant = message.role == "assistant";
  if (!message.calls.empty() && !assistant) return refuse(Path(path, "tool_calls"), "belong to messages of the role 'assistant'");
  if (message.role == "tool" && message.tool_call_id.empty())
    return refuse(Path(path, "tool_call_id"), "is missing: it says which call this is the answer to", "missing_required_parameter");
  if (!message.has_content && !assistant) return refuse(Path(path, "content"), "is missing", "missing_required_parameter");
  return {};
}

json::Array calls_for_template(const std::vector<Call>& calls) {
  json::Array out;
  for (const Call& call : calls) {
    json::Object one{{"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
    if (!call.id.empty()) one["id"] = call.id;
    out.push_back(std::move(one));
  }
  return out;
}

json::Object for_template(const Message& message, const std::map<std::string, std::string, std::less<>>& called) {
  json::Object out{{"role", message.role}};
  // Always a text, as with vLLM: templates add it to others, and many would refuse a message without one.
  out["content"] = message.content;
  if (!message.reasoning.empty()) out["reasoning_content"] = message.reasoning;
  if (!message.calls.empty()) out["tool_calls"] = calls_for_template(message.calls);
  if (!message.tool_call_id.empty()) out["tool_call_id"] = message.tool_call_id;
  std::string name = message.name;
  if (const auto it = called.find(message.tool_call_id); name.empty() && message.role == "tool" && it != called.end()) name = it->second;
  if (!name.empty()) out["name"] = name;
  return out;
}

}  // namespace

ApiResult<std::string> read_content(const Value& value, const Path& path) {
  if (value.is_string()) return std::string(value.get_string());
  if (!value.is_array()) return wrong_type(path, "a text or a list of parts", value);
  std::string text;
  const json::Array& parts = value.get_array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    WEIR_ASSIGN(const std::string part, read_part(parts[i], Path(path, i)));
    if (i > 0) text += '\n';
    text += part;
  }
  return text;
}

ApiResult<json::Array> read_messages(const Value& value, const Path& path) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  if (array->empty()) return refuse(path, "is an empty list", "empty");
  std::map<std::string, std::string, std::less<>> called;  // id of a call → the tool's name
  json::Array out;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const Path place(path, i);
    Message message;
    WEIR_TRY(message_fields().read((*array)[i], place, message));
    WEIR_TRY(check(message, place));
    for (const Call& call : message.calls) called[call.id] = call.name;
    out.push_back(for_template(message, called));
  }
  auto normalized = text::normalized_messages(out);
  if (!normalized) return refuse(path, normalized.error().message);
  return std::move(*normalized);
}

// What check() asks of each role.
Value messages_schema() {
  const auto of_role = [](std::string_view roles, std::initializer_list<std::string_view> needed) {
    json::Object result = message_fields().schema();
    json::Object& properties = result["properties"].as_object();
    properties["role"] = schema(roles);
    json::Array& required = result["required"].as_array();
    for (const std::string_view name : needed) required.emplace_back(name);
    return result;
  };
  json::Object said = of_role(R"({"enum": ["system", "developer", "user"]})", {"content"});
  json::Object called = of_role(R"({"enum": ["tool"]})", {"content", "tool_call_id"});
  called["properties"].as_object()["tool_call_id"] = schema(R"({"type": "string", "minLength": 1})");
  for (json::Object* one : {&said, &called}) {
    json::Object& properties = (*one)["properties"].as_object();
    properties["content"] = content_schema();
    properties["tool_calls"] = schema(R"({"type": ["array", "null"], "maxItems": 0})");
  }
  const json::Object answered = of_role(R"({"enum": ["assistant"]})", {});
  return json::Object{{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", json::Array{said, answered, called}}}}};
}

}  // namespace weir::api
