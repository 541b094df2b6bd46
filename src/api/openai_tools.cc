// SPDX-License-Identifier: Apache-2.0
#include "api/openai_tools.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace weir::api {
namespace {

using json::Value;

constexpr std::size_t kMaxToolName = 128;
constexpr const char* kNamePattern = "^[A-Za-z0-9_.:/-]{1,128}$";

json::Object name_schema() { return {{"type", "string"}, {"pattern", kNamePattern}}; }

ApiStatus read_tool_name(const Value& value, const Path& path, Tool& tool) {
  WEIR_ASSIGN(tool.name, read_text(value, path));
  return check_tool_name(tool.name, path);
}

ApiStatus read_parameters(const Value& value, const Path& path, Tool& tool) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  tool.parameters = *object;
  return {};
}

const Fields<Tool>& function_fields() {
  static const Fields<Tool> fields = [] {
    Fields<Tool> f;
    f.value("name", name_schema(), read_tool_name).required();
    f.text("description", [](Tool& t, std::string v) { t.description = std::move(v); });
    f.value("parameters", json::Object{{"type", "object"}}, read_parameters).note("A JSON schema of an object.");
    f.boolean("strict", [](Tool& t, bool v) { t.strict = v; }).note("Arguments are held to the schema by a grammar.");
    return f;
  }();
  return fields;
}

ApiStatus read_type(const Value& value, const Path& path, Tool&) {
  if (value.is_string() && value.get_string() == "custom")
    return refuse(path, "is 'custom', but only tools of the type 'function' are supported", "unsupported_value");
  WEIR_TRY(read_name(value, path, {"function"}));
  return {};
}

const Fields<Tool>& tool_fields() {
  static const Fields<Tool> fields = [] {
    Fields<Tool> f;
    f.value("type", schema(R"({"enum": ["function"]})"), read_type).required();
    f.object<Tool>("function", function_fields(), [](Tool& t) -> Tool& { return t; }).required();
    f.ignore({"cache_control"});
    return f;
  }();
  return fields;
}

bool has_tool(const std::vector<Tool>& tools, std::string_view name) {
  return std::any_of(tools.begin(), tools.end(), [&](const Tool& tool) { return tool.name == name; });
}

// {"type": "function", "function": {"name": …}}; the name must be one of the request's tools.
ApiResult<std::string> read_named(const json::Object& object, const Path& path, const std::vector<Tool>& tools) {
  WEIR_ASSIGN(const Value* function, require(object, "function", path));
  const Path place(path, "function");
  WEIR_ASSIGN(const json::Object* inner, read_object(*function, place));
  WEIR_ASSIGN(const Value* name, require(*inner, "name", place));
  WEIR_ASSIGN(std::string text, read_text(*name, Path(place, "name")));
  if (!has_tool(tools, text)) return refuse(Path(place, "name"), "names none of the request's tools", "unknown_tool");
  for (const auto& [key, value] : *inner)
    if (key != "name") return refuse(Path(place, key), "is not a field that is known here", "unknown_parameter");
  for (const auto& [key, value] : object)
    if (key != "type" && key != "function") return refuse(Path(path, key), "is not a field that is known here", "unknown_parameter");
  return text;
}

struct AllowedTools {
  std::string mode;
  const Value* tools = nullptr;
};

const Fields<AllowedTools>& allowed_fields() {
  static const Fields<AllowedTools> fields = [] {
    Fields<AllowedTools> f;
    f.value("mode", schema(R"({"enum": ["auto", "required"]})"), [](const Value& value, const Path& path, AllowedTools& a) -> ApiStatus {
       WEIR_ASSIGN(a.mode, read_name(value, path, {"auto", "required"}));
       return {};
     }).required();
    f.value("tools", schema(R"({"type": "array", "minItems": 1, "items": {"type": "object"}})"),
            [](const Value& value, const Path&, AllowedTools& a) -> ApiStatus {
              a.tools = &value;
              return {};
            })
        .required();
    return f;
  }();
  return fields;
}

ApiStatus read_allowed(const json::Object& object, const Path& path, GenerationRequest& request) {
  WEIR_ASSIGN(const Value* inner, require(object, "allowed_tools", path));
  const Path place(path, "allowed_tools");
  AllowedTools allowed;
  WEIR_TRY(allowed_fields().read(*inner, place, allowed));
  const Path list_place(place, "tools");
  WEIR_ASSIGN(const json::Array* list, read_array(*allowed.tools, list_place));
  if (list->empty()) return refuse(list_place, "is an empty list", "empty");
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < list->size(); ++i) {
    WEIR_ASSIGN(const json::Object* one, read_object((*list)[i], Path(list_place, i)));
    WEIR_ASSIGN(std::string name, read_named(*one, Path(list_place, i), request.tools));
    names.insert(std::move(name));
  }
  std::erase_if(request.tools, [&](const Tool& tool) { return !names.contains(tool.name); });
  request.tool_choice.kind = allowed.mode == "required" ? ToolChoice::Kind::kRequired : ToolChoice::Kind::kAuto;
  return {};
}

ApiStatus read_choice_word(const Value& value, const Path& path, GenerationRequest& request) {
  WEIR_ASSIGN(const std::string_view word, read_name(value, path, {"none", "auto", "required"}));
  using Kind = ToolChoice::Kind;
  request.tool_choice.kind = word == "none" ? Kind::kNone : word == "auto" ? Kind::kAuto : Kind::kRequired;
  if (word == "required" && request.tools.empty()) return refuse(path, "is 'required', but the request has no tools");
  return {};
}

}  // namespace

ApiStatus check_tool_name(std::string_view name, const Path& path) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("_.:/-").contains(c);
  };
  if (!name.empty() && name.size() <= kMaxToolName && std::all_of(name.begin(), name.end(), good)) return {};
  return refuse(path, fmt::format("should be 1 to {} letters, digits, or any of _.:/-", kMaxToolName));
}

json::Object tool_for_template(const Tool& tool) {
  json::Object function{{"name", tool.name}};
  if (!tool.description.empty()) function["description"] = tool.description;
  function["parameters"] = tool.parameters;
  if (tool.strict) function["strict"] = true;
  return {{"type", "function"}, {"function", std::move(function)}};
}

ApiResult<std::vector<Tool>> read_tools(const Value& value, const Path& path) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  if (array->size() > kMaxTools) return refuse(path, fmt::format("has {} entries; {} are allowed", array->size(), kMaxTools), "too_many");
  std::vector<Tool> tools;
  for (std::size_t i = 0; i < array->size(); ++i) {
    Tool tool;
    WEIR_TRY(tool_fields().read((*array)[i], Path(path, i), tool));
    if (has_tool(tools, tool.name))
      return refuse(Path(path, i), fmt::format("has the name '{}' of another tool", tool.name), "duplicate_tool");
    tool.as_given = tool_for_template(tool);
    tools.push_back(std::move(tool));
  }
  return tools;
}

Value tools_schema() { return json::Object{{"type", "array"}, {"maxItems", kMaxTools}, {"items", tool_fields().schema()}}; }

ApiStatus read_tool_choice(const Value& value, const Path& path, GenerationRequest& request) {
  if (value.is_string()) return read_choice_word(value, path, request);
  if (!value.is_object()) return wrong_type(path, "a string or an object", value);
  const json::Object& object = value.get_object();
  WEIR_ASSIGN(const Value* type, require(object, "type", path));
  WEIR_ASSIGN(const std::string_view name, read_name(*type, Path(path, "type"), {"function", "allowed_tools"}));
  if (name == "allowed_tools") return read_allowed(object, path, request);
  WEIR_ASSIGN(request.tool_choice.name, read_named(object, path, request.tools));
  request.tool_choice.kind = ToolChoice::Kind::kNamed;
  return {};
}

Value tool_choice_schema() {
  const json::Object named{{"type", "object"},
                           {"properties",
                            {{"type", schema(R"({"enum": ["function"]})")},
                             {"function",
                              {{"type", "object"},
                               {"properties", {{"name", name_schema()}}},
                               {"required", json::Array{"name"}},
                               {"additionalProperties", false}}}}},
                           {"required", json::Array{"type", "function"}},
                           {"additionalProperties", false}};
  json::Object allowed = allowed_fields().schema();
  allowed["properties"].as_object()["tools"] = json::Object{{"type", "array"}, {"minItems", 1}, {"items", named}};
  const json::Object by_list{{"type", "object"},
                             {"properties", {{"type", schema(R"({"enum": ["allowed_tools"]})")}, {"allowed_tools", std::move(allowed)}}},
                             {"required", json::Array{"type", "allowed_tools"}},
                             {"additionalProperties", false}};
  return json::Object{{"anyOf", {schema(R"({"enum": ["none", "auto", "required"]})"), named, by_list}}};
}

}  // namespace weir::api
