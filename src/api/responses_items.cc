// SPDX-License-Identifier: Apache-2.0
#include "api/responses_items.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>

#include "api/translation.h"
#include "text/messages.h"

namespace weir::api {
namespace {

using json::Value;

// ---- one part of a message

struct Part {
  std::string type, text;
  bool has_text = false;
};

ApiStatus read_part_type(const Value& value, const Path& path, Part& part) {
  WEIR_ASSIGN(part.type, read_text(value, path));
  for (const char* kind : {"input_image", "input_file", "input_audio", "image_url", "output_audio", "computer_screenshot"})
    if (part.type == kind)
      return refuse(path, fmt::format("is '{}', but this server's models read text only", kind), "unsupported_content");
  WEIR_TRY(read_name(value, path, {"input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"}));
  return {};
}

ApiStatus read_part_text(const Value& value, const Path& path, Part& part) {
  WEIR_ASSIGN(part.text, read_text(value, path));
  part.has_text = true;
  return {};
}

const Fields<Part>& part_fields() {
  static const Fields<Part> fields = [] {
    Fields<Part> f;
    f.value("type", schema(R"({"enum": ["input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"]})"),
            read_part_type)
        .required();
    f.value("text", schema(R"({"type": "string"})"), read_part_text);
    f.value("refusal", schema(R"({"type": "string"})"), read_part_text);
    f.ignore({"annotations", "logprobs", "parsed", "prompt_cache_breakpoint", "cache_control"});
    return f;
  }();
  return fields;
}

ApiResult<std::string> read_part(const Value& value, const Path& path) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  Part part;
  // The type first: of a picture nothing else should be complained about.
  WEIR_ASSIGN(const Value* type, require(*object, "type", path));
  WEIR_TRY(read_part_type(*type, Path(path, "type"), part));
  WEIR_TRY(part_fields().read(*object, path, part));
  if (!part.has_text) return refuse(Path(path, part.type == "refusal" ? "refusal" : "text"), "is missing", "missing_required_parameter");
  return std::move(part.text);
}

// A text, or the texts of a list of parts.
ApiResult<std::vector<std::string>> read_parts(const Value& value, const Path& path) {
  if (value.is_string()) return std::vector<std::string>{std::string(value.get_string())};
  if (!value.is_array()) return wrong_type(path, "a text or a list of parts", value);
  std::vector<std::string> texts;
  const json::Array& parts = value.get_array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    WEIR_ASSIGN(std::string text, read_part(parts[i], Path(path, i)));
    texts.push_back(std::move(text));
  }
  return texts;
}

Value parts_schema() {
  return json::Object{{"anyOf", {json::Object{{"type", "string"}}, json::Object{{"type", "array"}, {"items", part_fields().schema()}}}}};
}

json::Array parts_json(const std::vector<std::string>& texts, std::string_view type) {
  json::Array parts;
  for (const std::string& text : texts) {
    json::Object part{{"type", type}, {"text", text}};
    if (type == "output_text") part["annotations"] = json::Array();
    parts.push_back(std::move(part));
  }
  return parts;
}

// ---- one item

struct Item {
  std::string type = "message";
  std::string id = {}, role = {}, status = {}, call_id = {}, name = {}, arguments = {};
  std::vector<std::string> content = {}, summary = {}, output = {};
};

ApiStatus read_status(const Value& value, const Path& path, Item& item) {
  WEIR_ASSIGN(item.status, read_name(value, path, {"in_progress", "completed", "incomplete"}));
  return {};
}

template <std::vector<std::string> Item::* kMember>
ApiStatus read_parts_into(const Value& value, const Path& path, Item& item) {
  WEIR_ASSIGN(item.*kMember, read_parts(value, path));
  return {};
}

void add_common(Fields<Item>& f, std::string_view type) {
  // Which table is read follows from the type; without one it is a message.
  f.value("type", json::Object{{"enum", json::Array{type}}}, [](const Value&, const Path&, Item&) -> ApiStatus { return {}; });
  if (type != "message") f.required();
  f.text("id", [](Item& item, std::string v) { item.id = std::move(v); });
  f.value("status", schema(R"({"enum": ["in_progress", "completed", "incomplete"]})"), read_status);
}

const Fields<Item>& message_fields() {
  static const Fields<Item> fields = [] {
    Fields<Item> f;
    add_common(f, "message");
    f.value("role", schema(R"({"enum": ["user", "assistant", "system", "developer"]})"),
            [](const Value& value, const Path& path, Item& item) -> ApiStatus {
              WEIR_ASSIGN(item.role, read_name(value, path, {"user", "assistant", "system", "developer"}));
              return {};
            })
        .required();
    f.value("content", parts_schema(), read_parts_into<&Item::content>).required();
    f.ignore({"phase", "name", "tool_calls", "refusal"});
    return f;
  }();
  return fields;
}

const Fields<Item>& call_fields() {
  static const Fields<Item> fields = [] {
    Fields<Item> f;
    add_common(f, "function_call");
    f.text("call_id", [](Item& item, std::string v) { item.call_id = std::move(v); }).required();
    f.value("name", tool_name_schema(), [](const Value& value, const Path& path, Item& item) {
       return read_tool_name(value, path, item.name);
     }).required();
    f.text("arguments", [](Item& item, std::string v) { item.arguments = std::move(v); }).note("JSON text.").required();
    f.ignore({"parsed_arguments", "caller", "namespace", "async", "created_by"});
    return f;
  }();
  return fields;
}

const Fields<Item>& output_fields() {
  static const Fields<Item> fields = [] {
    Fields<Item> f;
    add_common(f, "function_call_output");
    f.text("call_id", [](Item& item, std::string v) { item.call_id = std::move(v); }).required();
    f.value("output", parts_schema(), read_parts_into<&Item::output>).required();
    f.ignore({"name", "caller", "namespace", "created_by"});
    return f;
  }();
  return fields;
}

const Fields<Item>& reasoning_fields() {
  static const Fields<Item> fields = [] {
    Fields<Item> f;
    add_common(f, "reasoning");
    f.value("summary", parts_schema(), read_parts_into<&Item::summary>);
    f.value("content", parts_schema(), read_parts_into<&Item::content>);
    f.ignore({"encrypted_content"});
    return f;
  }();
  return fields;
}

struct Kind {
  std::string_view type;
  const Fields<Item>& (*fields)();
};
constexpr Kind kKinds[] = {
    {"message", message_fields}, {"function_call", call_fields}, {"function_call_output", output_fields}, {"reasoning", reasoning_fields}};

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i) all += (i > 0 ? "\n" : "") + texts[i];
  return all;
}

json::Object item_json(const Item& item) {
  json::Object out{{"type", item.type}};
  if (!item.id.empty()) out["id"] = item.id;
  if (item.type == "message") {
    out["role"] = item.role;
    out["content"] = parts_json(item.content, item.role == "assistant" ? "output_text" : "input_text");
  } else if (item.type == "function_call") {
    out["call_id"] = item.call_id;
    out["name"] = item.name;
    out["arguments"] = item.arguments;
  } else if (item.type == "function_call_output") {
    out["call_id"] = item.call_id;
    out["output"] = joined(item.output);
  } else {
    out["summary"] = parts_json(item.summary, "summary_text");
    if (!item.content.empty()) out["content"] = parts_json(item.content, "reasoning_text");
  }
  out["status"] = item.status.empty() ? "completed" : item.status;
  return out;
}

ApiResult<json::Object> read_item(const Value& value, const Path& path) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  Item item;
  if (const Value* type = json::find(*object, "type")) {
    WEIR_ASSIGN(item.type, read_text(*type, Path(path, "type")));
  } else {
    WEIR_TRY(require(*object, "role", path));
  }
  for (const Kind& kind : kKinds) {
    if (kind.type != item.type) continue;
    WEIR_TRY(kind.fields().read(*object, path, item));
    return item_json(item);
  }
  if (item.type == "item_reference")
    return refuse(Path(path, "type"), "is 'item_reference', which is not supported: send the item itself, or previous_response_id",
                  "unsupported_value");
  const Value type(item.type);
  WEIR_TRY(read_name(type, Path(path, "type"), {"message", "function_call", "function_call_output", "reasoning"}));
  return json::Object();
}

// ---- messages

std::string texts_of(const json::Object& item, std::string_view key) {
  std::string all;
  const Value* parts = json::find(item, key);
  if (!parts || !parts->is_array()) return all;
  for (std::size_t i = 0; i < parts->get_array().size(); ++i) {
    if (i > 0) all += '\n';
    all += parts->get_array()[i].at("text").get_string();
  }
  return all;
}

// Puts items into turns.
class Turns {
 public:
  explicit Turns(std::string_view instructions) : system_(instructions), has_system_(!instructions.empty()) {}

  void message(std::string_view role, std::string text) {
    if (role == "assistant") {
      if (assistant_.contains("content") || assistant_.contains("tool_calls")) end_assistant();
      begin_assistant()["content"] = std::move(text);
      return;
    }
    end_assistant();
    const bool system = role == "system" || role == "developer";
    if (system && messages_.empty()) {
      if (has_system_) system_ += "\n\n";
      system_ += text;
      has_system_ = true;
      return;
    }
    put_system();
    messages_.push_back(json::Object{{"role", system ? "system" : role}, {"content", std::move(text)}});
  }

  void reasoning(std::string text) {
    if (text.empty()) return;
    if (!assistant_.empty()) end_assistant();
    begin_assistant()["reasoning_content"] = std::move(text);
  }

  void call(const json::Object& item) {
    Value& calls = begin_assistant()["tool_calls"];
    if (!calls.is_array()) calls = json::Array();
    calls.get_array().push_back(json::Object{
        {"type", "function"}, {"id", item.at("call_id")}, {"function", {{"name", item.at("name")}, {"arguments", item.at("arguments")}}}});
    names_[std::string(item.at("call_id").get_string())] = item.at("name").get_string();
  }

  void output(const json::Object& item) {
    end_assistant();
    put_system();
    const auto name = names_.find(std::string(item.at("call_id").get_string()));
    json::Object message{{"role", "tool"}, {"tool_call_id", item.at("call_id")}, {"content", item.at("output")}};
    if (name != names_.end()) message["name"] = name->second;
    messages_.push_back(std::move(message));
  }

  json::Array take() {
    end_assistant();
    put_system();
    return std::move(messages_);
  }

 private:
  json::Object& begin_assistant() {
    put_system();
    assistant_["role"] = "assistant";
    return assistant_;
  }
  void end_assistant() {
    if (assistant_.empty()) return;
    if (!assistant_.contains("content") && !assistant_.contains("tool_calls")) assistant_["content"] = "";
    messages_.push_back(std::move(assistant_));
    assistant_ = {};
  }
  void put_system() {
    if (has_system_) messages_.push_back(json::Object{{"role", "system"}, {"content", system_}});
    has_system_ = false;
  }

  std::string system_;
  bool has_system_;
  json::Object assistant_;  // the turn that is being put together
  json::Array messages_;
  std::map<std::string, std::string> names_;  // of functions, by the ids of their calls
};

}  // namespace

ApiResult<json::Array> read_items(const Value& input, const Path& path) {
  if (input.is_string()) {
    Item item{.role = "user"};
    item.content.emplace_back(input.get_string());
    return json::Array{item_json(item)};
  }
  if (!input.is_array()) return wrong_type(path, "a text or a list of items", input);
  json::Array items;
  for (std::size_t i = 0; i < input.get_array().size(); ++i) {
    WEIR_ASSIGN(json::Object item, read_item(input.get_array()[i], Path(path, i)));
    items.push_back(std::move(item));
  }
  return items;
}

Value items_schema() {
  json::Array kinds;
  for (const Kind& kind : kKinds) kinds.push_back(kind.fields().schema());
  return json::Object{
      {"anyOf",
       {json::Object{{"type", "string"}}, json::Object{{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", std::move(kinds)}}}}}}};
}

json::Array messages_of(std::string_view instructions, const json::Array& items) {
  Turns turns(instructions);
  for (const Value& value : items) {
    const json::Object& item = value.get_object();
    const std::string_view type = item.at("type").get_string();
    if (type == "message") {
      turns.message(item.at("role").get_string(), texts_of(item, "content"));
    } else if (type == "function_call") {
      turns.call(item);
    } else if (type == "function_call_output") {
      turns.output(item);
    } else {
      std::string text = texts_of(item, "content");
      turns.reasoning(text.empty() ? texts_of(item, "summary") : std::move(text));
    }
  }
  json::Array messages = turns.take();
  auto normalized = text::normalized_messages(messages);
  return normalized ? std::move(*normalized) : std::move(messages);
}

ApiStatus check_calls(const json::Array& items, std::size_t first, const Path& path) {
  std::map<std::string, bool> calls;  // id → answered
  for (std::size_t i = 0; i < items.size(); ++i) {
    const json::Object& item = items[i].get_object();
    const std::string_view type = item.at("type").get_string();
    if (type != "function_call" && type != "function_call_output") continue;
    const std::string id(item.at("call_id").get_string());
    if (type == "function_call") {
      calls.emplace(id, false);
      continue;
    }
    const Path place(path, i - std::min(i, first));
    const auto call = calls.find(id);
    if (i < first) {
      if (call != calls.end()) call->second = true;
      continue;
    }
    if (call == calls.end()) return refuse(Path(place, "call_id"), "answers no function_call before it", "unknown_call");
    if (call->second) return refuse(Path(place, "call_id"), "answers a function_call that is answered already", "duplicate_output");
    call->second = true;
  }
  return {};
}

}  // namespace weir::api
