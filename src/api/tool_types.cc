// SPDX-License-Identifier: Apache-2.0
// Types from schemas, and values by their types.
#include "api/tool_types.h"

#include "api/output_parser_calls.h"
#include "api/output_python_scanner.h"

namespace weir::api {
namespace {

constexpr int kMaxDepth = 16;

std::uint8_t type_bit(std::string_view name) {
  if (name == "string") return kTypeString;
  if (name == "number" || name == "integer") return kTypeNumber;
  if (name == "boolean") return kTypeBool;
  if (name == "null") return kTypeNull;
  if (name == "object") return kTypeObject;
  return name == "array" ? kTypeArray : kTypeAny;
}

std::uint8_t type_of_value(const json::Value& value) {
  if (value.is_string()) return kTypeString;
  if (value.is_bool()) return kTypeBool;
  if (value.is_null()) return kTypeNull;
  if (value.is_object()) return kTypeObject;
  return value.is_array() ? kTypeArray : kTypeNumber;
}

std::uint8_t types_at(const json::Value& schema, const json::Object& root, int depth);

std::uint8_t types_of_members(const json::Value& list, const json::Object& root, int depth, bool all) {
  if (!list.is_array()) return kTypeAny;
  std::uint8_t types = all ? kTypeAny : 0;
  for (const json::Value& one : list.get_array()) {
    const std::uint8_t member = types_at(one, root, depth + 1);
    types = all ? types & member : types | member;
  }
  return types;
}

std::uint8_t types_named(const json::Value& type) {
  if (type.is_string()) return type_bit(type.get_string());
  if (!type.is_array()) return kTypeAny;
  std::uint8_t types = 0;
  for (const json::Value& one : type.get_array()) types |= one.is_string() ? type_bit(one.get_string()) : kTypeAny;
  return types;
}

std::uint8_t types_at(const json::Value& schema, const json::Object& root, int depth) {
  if (!schema.is_object() || depth > kMaxDepth) return kTypeAny;
  const json::Object* object = resolved(schema.get_object(), root);
  if (!object) return kTypeAny;
  std::uint8_t types = kTypeAny;
  for (const auto& [key, value] : *object) {
    if (key == "type") {
      types &= types_named(value);
    } else if (key == "enum" && value.is_array()) {
      std::uint8_t listed = 0;
      for (const json::Value& one : value.get_array()) listed |= type_of_value(one);
      types &= listed;
    } else if (key == "const") {
      types &= type_of_value(value);
    } else if (key == "anyOf" || key == "oneOf" || key == "allOf") {
      types &= types_of_members(value, root, depth, key == "allOf");
    }
  }
  return types ? types : kTypeAny;
}

// The text as JSON when it is such a value, whether written in JSON's way or Python's.
std::optional<std::string> json_text_of(std::string_view text) {
  if (json::parse(text, "value", {.max_depth = JsonScanner::kMaxDepth})) return std::string(text);
  PythonScanner python;
  std::string out;
  ReadStep step = ReadStep::kMore;
  for (const char c : text) {
    if (step != ReadStep::kMore) return std::nullopt;
    step = python.step(c, out);
  }
  if (step != ReadStep::kDone && !(step == ReadStep::kMore && python.finish(out))) return std::nullopt;
  return json::parse(out, "value", {.max_depth = JsonScanner::kMaxDepth}) ? std::optional(out) : std::nullopt;
}

}  // namespace

const json::Object* resolved(const json::Object& schema, const json::Object& root) {
  const json::Object* at = &schema;
  for (int steps = 0; steps < kMaxDepth; ++steps) {
    const json::Value* reference = at->if_contains("$ref");
    if (!reference) return at;
    if (!reference->is_string() || !reference->get_string().starts_with("#/")) return nullptr;
    std::string_view path = std::string_view(reference->get_string()).substr(2);
    at = &root;
    while (!path.empty()) {
      const std::size_t end = std::min(path.find('/'), path.size());
      const json::Value* member = at->if_contains(path.substr(0, end));
      if (!member || !member->is_object()) return nullptr;
      at = &member->get_object();
      path.remove_prefix(std::min(end + 1, path.size()));
    }
  }
  return nullptr;
}

std::uint8_t types_of(const json::Value& schema, const json::Object& root) { return types_at(schema, root, 0); }

std::uint8_t ToolTypes::types(std::string_view argument) const {
  const auto found = arguments.find(argument);
  return found == arguments.end() ? std::uint8_t{kTypeAny} : found->second;
}

std::vector<ToolTypes> tool_types(const std::vector<Tool>& tools) {
  std::vector<ToolTypes> all;
  for (const Tool& tool : tools) {
    ToolTypes one{.name = tool.name};
    const json::Object* root = resolved(tool.parameters, tool.parameters);
    const json::Value* properties = root ? json::find(*root, "properties") : nullptr;
    if (properties && properties->is_object()) {
      for (const auto& [key, schema] : properties->get_object()) one.arguments[std::string(key)] = types_of(schema, tool.parameters);
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string json_value_of(std::string_view text, std::uint8_t types) {
  if (types != kTypeString) {
    if (const auto value = json_text_of(trimmed(text))) {
      const auto parsed = json::parse(*value, "value", {.max_depth = JsonScanner::kMaxDepth});
      const std::uint8_t type = type_of_value(*parsed);
      // In quotes it is meant as a string where all types are possible, and where strings are one of a few it is the text itself.
      if ((types & type) && (type != kTypeString || types == kTypeAny || !(types & kTypeString))) return *value;
    }
  }
  std::string out = "\"";
  append_json_escaped(out, text);
  return out + '"';
}

}  // namespace weir::api
