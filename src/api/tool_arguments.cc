// SPDX-License-Identifier: Apache-2.0
// Arguments by schema. Outside of JSON each property is a rule of its own, so what a schema says of the object as a whole, or of a text
// without quotes, must be something that the rules enforce.
#include "api/tool_arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "api/output_parser_calls.h"
#include "api/tool_types.h"

namespace weir::api {
namespace {

constexpr std::array<std::string_view, 8> kNotes{"title", "description", "default", "examples", "$schema", "$comment", "$id", "deprecated"};
constexpr std::array<std::string_view, 7> kObjectKeys{"type",  "properties",  "required", "additionalProperties",
                                                      "$defs", "definitions", "strict"};
constexpr std::array<std::string_view, 5> kTextKeys{"type", "enum", "const", "anyOf", "oneOf"};
constexpr std::array<std::string_view, 1> kTypeOnly{"type"};

bool is_in(const auto& list, std::string_view key) { return std::ranges::find(list, key) != list.end(); }

// kUnsupported with the first key that is in neither list.
Status only(const json::Object& schema, const auto& keys, std::string_view where) {
  for (const auto& [key, value] : schema) {
    if (is_in(kNotes, key) || is_in(keys, key)) continue;
    return fail(ErrorCode::kUnsupported, "the keyword \"{}\" {} is not supported with this model's format of calls", std::string_view(key),
                where);
  }
  return {};
}

struct Property {
  std::string name;
  const json::Value* schema;
  bool required;
};

struct Arguments {
  const json::Object& root;
  std::vector<Property> properties;
};

Result<Arguments> read_arguments(const json::Object& schema) {
  const json::Object* object = resolved(schema, schema);
  if (!object) return fail(ErrorCode::kUnsupported, "the keyword \"$ref\" leads out of the schema");
  WEIR_TRY(only(*object, kObjectKeys, "of an object"));
  Arguments arguments{.root = schema, .properties = {}};
  const json::Value* type = json::find(*object, "type");
  if (type && *type != "object") return fail(ErrorCode::kInvalidArgument, "the \"type\" of a function's parameters must be \"object\"");
  if (const json::Value* properties = json::find(*object, "properties"); properties && properties->is_object()) {
    for (const auto& [name, one] : properties->get_object()) arguments.properties.push_back({std::string(name), &one, false});
  }
  const json::Value* required = json::find(*object, "required");
  if (!required || !required->is_array()) return arguments;
  for (const json::Value& one : required->get_array()) {
    const auto found = std::ranges::find_if(
        arguments.properties, [&](const Property& p) { return one.is_string() && std::string_view(one.get_string()) == p.name; });
    if (found == arguments.properties.end()) {
      return fail(ErrorCode::kUnsupported, "the keyword \"required\" names {}, which is no property", boost::json::serialize(one));
    }
    found->required = true;
  }
  return arguments;
}

// A part of the schema, with the definitions that it may refer to.
json::Value with_definitions(const json::Value& schema, const json::Object& root) {
  if (!schema.is_object()) return schema;
  json::Object copy = schema.get_object();
  for (const std::string_view key : {"$defs", "definitions"}) {
    if (const json::Value* definitions = root.if_contains(key); definitions && !copy.contains(key)) copy[key] = *definitions;
  }
  return copy;
}

// Only white space, letters and such: nothing that a tag or a quote could be made of.
Status check_key(std::string_view key) {
  const bool fine =
      !key.empty() && key.size() < kMaxName && trimmed(key) == key &&
      std::ranges::none_of(
          key,
          [](char c) {
            return static_cast<unsigned char>(c) < 0x20 || std::string_view("<>\"\\={}[]()").find(c) != std::string_view::npos;
          });
  if (fine) return {};
  return fail(ErrorCode::kUnsupported, "the property name {} is not supported with this model's format of calls",
              boost::json::serialize(json::Value(key)));
}

class TagGrammar {
 public:
  TagGrammar(LarkWriter& lark, const ArgumentTags& tags, const json::Object& root)
      : lark_(lark), tags_(tags), root_(root), close_(trimmed(tags.parameter_close)) {}

  Result<std::string> parameter(const Property& property) {
    WEIR_TRY(check_key(property.name));
    WEIR_ASSIGN(const Value value, this->value(*property.schema));
    const std::string_view key_close = value.as_json && !tags_.json_key_close.empty() ? tags_.json_key_close : tags_.key_close;
    const std::string open = std::string(tags_.parameter_open) + property.name + std::string(key_close) + std::string(tags_.value_open);
    return lark_.rule(lark_.text(open) + value.rule);
  }

 private:
  struct Value {
    std::string rule;  // with the closing tag
    bool as_json;
  };

  Result<Value> value(const json::Value& schema) {
    const std::uint8_t types = types_of(schema, root_);
    const json::Object* object = schema.is_object() ? resolved(schema.get_object(), root_) : nullptr;
    if (object && types != kTypeAny && (types & kTypeString)) {
      WEIR_TRY(only(*object, kTextKeys, "of a string"));
      if (const json::Value* list = json::find(*object, "enum"); list && list->is_array()) return listed(list->get_array());
      if (const json::Value* one = object->if_contains("const")) return listed({*one});
      for (const std::string_view key : {"anyOf", "oneOf"}) {
        const json::Value* members = json::find(*object, key);
        if (!members || !members->is_array()) continue;
        for (const json::Value& one : members->get_array()) {
          if (one.is_object()) WEIR_TRY(only(one.get_object(), kTypeOnly, "of a string among other types"));
        }
      }
      if (!any_text_) any_text_ = lark_.text_until(tags_.parameter_close);
      return Value{*any_text_, false};  // whatever is no value of another allowed type is a string
    }
    return Value{LarkWriter::schema(with_definitions(schema, root_)) + lark_.text(tags_.parameter_close), true};
  }

  Result<Value> listed(const json::Array& values) {
    std::string rule;
    for (const json::Value& one : values) {
      const std::string text = one.is_string() ? std::string(one.get_string()) : boost::json::serialize(one);
      if (text.find(close_) != text.npos) return fail(ErrorCode::kUnsupported, "a value of \"enum\" contains {}", close_);
      rule += (rule.empty() ? "" : "| ") + lark_.text(text + std::string(tags_.parameter_close));
    }
    if (rule.empty()) return fail(ErrorCode::kInvalidArgument, "the keyword \"enum\" has no values");
    return Value{lark_.rule(rule), false};
  }

  LarkWriter& lark_;
  const ArgumentTags& tags_;
  const json::Object& root_;
  std::string_view close_;
  std::optional<std::string> any_text_;
};

}  // namespace

Result<std::string> json_arguments(const json::Object& schema) {
  json::Object object = schema;
  const json::Value* type = json::find(object, "type");
  if (type && *type != "object") return fail(ErrorCode::kInvalidArgument, "the \"type\" of a function's parameters must be \"object\"");
  if (!type && !object.contains("$ref")) object["type"] = "object";
  return LarkWriter::schema(object);
}

Result<std::string> tagged_arguments(LarkWriter& lark, const ArgumentTags& tags, const json::Object& schema) {
  WEIR_ASSIGN(const Arguments arguments, read_arguments(schema));
  TagGrammar grammar(lark, tags, schema);
  std::string out;
  for (const Property& property : arguments.properties) {
    WEIR_ASSIGN(const std::string parameter, grammar.parameter(property));
    out += parameter + (property.required ? "" : "? ");
  }
  return out;
}

Result<std::string> python_arguments(LarkWriter& lark, const json::Object& schema) {
  WEIR_ASSIGN(const Arguments arguments, read_arguments(schema));
  // From the last property to the first: what follows when nothing was written before, and when something was.
  std::string first, more;
  for (std::size_t i = arguments.properties.size(); i-- > 0;) {
    const Property& property = arguments.properties[i];
    WEIR_TRY(check_key(property.name));
    if (!std::ranges::all_of(property.name, is_name_character)) {
      return fail(ErrorCode::kUnsupported, "the property name \"{}\" is not supported with this model's format of calls", property.name);
    }
    const bool plain_bool = property.schema->is_object() && property.schema->get_object().size() == 1 &&
                            types_of(*property.schema, schema) == kTypeBool && property.schema->get_object().contains("type");
    const std::string value = plain_bool ? "(\"True\" | \"False\") " : LarkWriter::schema(with_definitions(*property.schema, schema));
    const std::string named = lark.rule(lark.text(property.name + "=") + value);
    const std::string next_first = named + more + (property.required ? "" : "| " + (first.empty() ? "\"\" " : first));
    const std::string next_more = lark.text(", ") + named + more + (property.required ? "" : "| " + (more.empty() ? "\"\" " : more));
    first = lark.rule(next_first);
    more = lark.rule(next_more);
  }
  return first;
}

}  // namespace weir::api
