// SPDX-License-Identifier: Apache-2.0
#include "api/anthropic_blocks.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "api/translation.h"

namespace weir::api {
namespace {

using json::Value;

struct Block {
  std::string type = {};
  std::string text = {};  // or thinking, or what a tool answered
  std::string id = {}, name = {};
  json::Object input = {};
  bool is_error = false;
};

void add_type(Fields<Block>& f, std::string_view type) {
  // Which table is read follows from the type.
  f.value("type", json::Object{{"enum", json::Array{type}}}, [](const Value&, const Path&, Block&) -> ApiStatus { return {}; }).required();
}

const Fields<Block>& text_fields() {
  static const Fields<Block> fields = [] {
    Fields<Block> f;
    add_type(f, "text");
    f.text("text", [](Block& b, std::string v) { b.text = std::move(v); }).required();
    f.ignore({"cache_control", "citations", "parsed_output"});
    return f;
  }();
  return fields;
}

const Fields<Block>& thinking_fields() {
  static const Fields<Block> fields = [] {
    Fields<Block> f;
    add_type(f, "thinking");
    f.text("thinking", [](Block& b, std::string v) { b.text = std::move(v); }).required();
    f.ignore({"signature", "cache_control"});
    return f;
  }();
  return fields;
}

const Fields<Block>& redacted_fields() {
  static const Fields<Block> fields = [] {
    Fields<Block> f;
    add_type(f, "redacted_thinking");
    f.ignore({"data", "cache_control"});
    return f;
  }();
  return fields;
}

const Fields<Block>& tool_use_fields() {
  static const Fields<Block> fields = [] {
    Fields<Block> f;
    add_type(f, "tool_use");
    f.text("id", [](Block& b, std::string v) { b.id = std::move(v); }).required();
    f.value("name", tool_name_schema(), [](const Value& value, const Path& path, Block& b) {
       return read_tool_name(value, path, b.name);
     }).required();
    f.value("input", json::Object{{"type", "object"}}, [](const Value& value, const Path& path, Block& b) -> ApiStatus {
       WEIR_ASSIGN(const json::Object* object, read_object(value, path));
       b.input = *object;
       return {};
     }).required();
    f.ignore({"cache_control", "caller", "toolset_name"});
    return f;
  }();
  return fields;
}

const Fields<Block>& tool_result_fields() {
  static const Fields<Block> fields = [] {
    Fields<Block> f;
    add_type(f, "tool_result");
    f.text("tool_use_id", [](Block& b, std::string v) { b.id = std::move(v); }).required();
    f.value("content", anthropic_text_schema(), [](const Value& value, const Path& path, Block& b) -> ApiStatus {
      WEIR_ASSIGN(b.text, read_anthropic_text(value, path));
      return {};
    });
    f.boolean("is_error", [](Block& b, bool v) { b.is_error = v; });
    f.ignore({"cache_control", "toolset_name"});
    return f;
  }();
  return fields;
}

struct Kind {
  std::string_view type, role;  // empty: of every role
  const Fields<Block>& (*fields)();
};
constexpr Kind kKinds[] = {{"text", "", text_fields},
                           {"tool_use", "assistant", tool_use_fields},
                           {"tool_result", "user", tool_result_fields},
                           {"thinking", "assistant", thinking_fields},
                           {"redacted_thinking", "assistant", redacted_fields}};

std::unexpected<ApiError> unknown_kind(std::string_view type, const Path& path) {
  for (const char* kind : {"image", "document", "search_result", "container_upload", "browser_state", "tool_reference", "file"})
    if (type == kind)
      return refuse(path, fmt::format("is '{}', but this server's models read text only: send what it says as text", kind),
                    "unsupported_content");
  for (const char* part : {"server_tool_use", "_tool_result", "mcp_"})
    if (type.find(part) != std::string_view::npos)
      return refuse(path, fmt::format("is '{}', but this server runs no tools of its own", shown_word(type)), "unsupported_content");
  const Value value(type);
  return std::unexpected(std::move(read_name(value, path, {"text", "tool_use", "tool_result", "thinking", "redacted_thinking"}).error()));
}

// Of the role; "" takes text only.
ApiResult<Block> read_block(const Value& value, const Path& path, std::string_view role) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  WEIR_ASSIGN(const Value* type, require(*object, "type", path));
  Block block;
  WEIR_ASSIGN(block.type, read_text(*type, Path(path, "type")));
  for (const Kind& kind : kKinds) {
    if (kind.type != block.type) continue;
    if (!kind.role.empty() && kind.role != role)
      return refuse(Path(path, "type"),
                    fmt::format("is '{}', which cannot stand here: it belongs to messages of the role '{}'", kind.type, kind.role));
    WEIR_TRY(kind.fields().read(*object, path, block));
    return block;
  }
  return unknown_kind(block.type, Path(path, "type"));
}

// Blocks of one message; a text is one block.
ApiResult<std::vector<Block>> read_blocks(const Value& value, const Path& path, std::string_view role) {
  std::vector<Block> blocks;
  if (value.is_string()) {
    blocks.push_back({.type = "text", .text = std::string(value.get_string())});
    return blocks;
  }
  if (!value.is_array()) return wrong_type(path, "a text or a list of content blocks", value);
  for (std::size_t i = 0; i < value.get_array().size(); ++i) {
    WEIR_ASSIGN(Block block, read_block(value.get_array()[i], Path(path, i), role));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

struct Message {
  std::string role;
  const Value* content = nullptr;
};

// A text, or blocks of these kinds.
Value content_schema(std::initializer_list<std::string_view> types) {
  json::Array kinds;
  for (const Kind& kind : kKinds)
    if (std::find(types.begin(), types.end(), kind.type) != types.end()) kinds.push_back(kind.fields().schema());
  json::Object blocks{{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", std::move(kinds)}}}};
  return json::Object{{"anyOf", json::Array{json::Object{{"type", "string"}}, std::move(blocks)}}};
}

const Fields<Message>& message_fields() {
  static const Fields<Message> fields = [] {
    Fields<Message> f;
    f.value("role", schema(R"({"enum": ["user", "assistant", "system"]})"),
            [](const Value& value, const Path& path, Message& m) -> ApiStatus {
              WEIR_ASSIGN(m.role, read_name(value, path, {"user", "assistant", "system"}));
              return {};
            })
        .required();
    f.value("content", content_schema({"text", "tool_use", "tool_result", "thinking", "redacted_thinking"}),
            [](const Value& value, const Path&, Message& m) -> ApiStatus {
              m.content = &value;
              return {};
            })
        .required();
    // What answers carry beside these, when a client sends them back whole.
    f.ignore({"id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container", "diagnostics"});
    return f;
  }();
  return fields;
}

void append_line(json::Object& message, std::string_view key, std::string_view text) {
  Value& value = message[key];
  if (value.is_null()) {
    value = text;
    return;
  }
  value.get_string() += '\n';
  value.get_string() += text;
}

class Turns {
 public:
  explicit Turns(const std::string& system) {
    if (!system.empty()) add("system", system);
  }

  ApiStatus add(const Message& message, const Path& path) {
    const Path place(path, "content");
    WEIR_ASSIGN(const std::vector<Block> blocks, read_blocks(*message.content, place, message.role));
    if (blocks.empty()) return refuse(place, "is an empty list", "empty");
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Block& block = blocks[i];
      if (block.type == "text") {
        append_line(turn(message.role), "content", block.text);
      } else if (block.type == "thinking") {
        append_line(turn(message.role), "reasoning_content", block.text);
      } else if (block.type == "tool_use") {
        add_call(block);
      } else if (block.type == "tool_result") {
        WEIR_TRY(add_result(block, Path(place, i)));
      }
    }
    return {};
  }

  ApiResult<AnthropicConversation> take(const Path& path) {
    AnthropicConversation out;
    if (!messages_.empty() && last().at("role").get_string() == "assistant") {
      if (last().contains("tool_calls")) return refuse(path, "ends with a tool_use: what the tool answered must follow as a tool_result");
      out.ends_with_assistant = last().contains("content") && !last().at("content").get_string().empty();
      if (!out.ends_with_assistant) messages_.pop_back();
    }
    if (messages_.empty()) return refuse(path, "holds nothing that could be answered", "empty");
    // Without content there is no key beside calls, as with transformers.
    for (Value& message : messages_)
      if (!message.get_object().contains("tool_calls") && !message.get_object().contains("content")) message.get_object()["content"] = "";
    out.messages = std::move(messages_);
    return out;
  }

 private:
  json::Object& last() { return messages_.back().get_object(); }

  // The message that goes on, if it is of that role; else a new one.
  json::Object& turn(std::string_view role) {
    if (messages_.empty() || last().at("role").get_string() != role) messages_.push_back(json::Object{{"role", role}});
    return last();
  }
  void add(std::string_view role, const std::string& text) { append_line(turn(role), "content", text); }

  void add_call(const Block& block) {
    Value& calls = turn("assistant")["tool_calls"];
    if (!calls.is_array()) calls = json::Array();
    calls.get_array().push_back(
        json::Object{{"type", "function"}, {"id", block.id}, {"function", {{"name", block.name}, {"arguments", block.input}}}});
    open_calls_[block.id] = block.name;
  }

  ApiStatus add_result(const Block& block, const Path& path) {
    const auto call = open_calls_.find(block.id);
    if (call == open_calls_.end())
      return refuse(Path(path, "tool_use_id"), "names no tool_use before it that waits for a result", "unknown_tool_use");
    // Templates have no place for it, but the model should know.
    const std::string text = block.is_error ? "Error: " + block.text : block.text;
    messages_.push_back(json::Object{{"role", "tool"}, {"tool_call_id", block.id}, {"name", call->second}, {"content", text}});
    open_calls_.erase(call);
    return {};
  }

  json::Array messages_;
  std::map<std::string, std::string> open_calls_;  // id → name of the tool
};

}  // namespace

ApiResult<std::string> read_anthropic_text(const Value& value, const Path& path) {
  WEIR_ASSIGN(const std::vector<Block> blocks, read_blocks(value, path, ""));
  std::string text;
  for (std::size_t i = 0; i < blocks.size(); ++i) text += (i > 0 ? "\n" : "") + blocks[i].text;
  return text;
}

Value anthropic_text_schema() {
  return json::Object{
      {"anyOf", json::Array{json::Object{{"type", "string"}}, json::Object{{"type", "array"}, {"items", text_fields().schema()}}}}};
}

ApiResult<AnthropicConversation> read_anthropic_messages(const Value& value, const Path& path, const std::string& system) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  if (array->empty()) return refuse(path, "is an empty list", "empty");
  Turns turns(system);
  for (std::size_t i = 0; i < array->size(); ++i) {
    const Path place(path, i);
    Message message;
    WEIR_TRY(message_fields().read((*array)[i], place, message));
    WEIR_TRY(turns.add(message, place));
  }
  return turns.take(path);
}

// Each role has blocks of its own, which the table of fields does not say.
Value anthropic_messages_schema() {
  const std::pair<const char*, Value> roles[] = {{"user", content_schema({"text", "tool_result"})},
                                                 {"assistant", content_schema({"text", "tool_use", "thinking", "redacted_thinking"})},
                                                 {"system", content_schema({"text"})}};
  json::Array messages;
  for (const auto& [role, content] : roles) {
    json::Object message = message_fields().schema();
    json::Object& properties = message["properties"].as_object();
    properties["role"] = json::Object{{"enum", json::Array{role}}};
    properties["content"] = content;
    messages.push_back(std::move(message));
  }
  return json::Object{{"type", "array"}, {"minItems", 1}, {"items", {{"anyOf", std::move(messages)}}}};
}

}  // namespace weir::api
