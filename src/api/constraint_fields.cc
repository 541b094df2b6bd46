// SPDX-License-Identifier: Apache-2.0
// What an answer must look like: OpenAI's response_format and the names that vLLM's clients use. At most one of them per request, and
// nothing in it is ignored: what cannot be enforced is an error, here or when the grammar is compiled.
#include <fmt/core.h>

#include "api/text_fields.h"

namespace weir::api {
namespace {

using grammar::GrammarKind;
using grammar::GrammarSpec;
using json::Value;
using Draft = TextDraft;

constexpr std::size_t kMaxListed = 4096;

ApiStatus set(Draft& draft, const Path& path, ApiResult<GrammarSpec> spec) {
  if (!spec) return std::unexpected(std::move(spec).error());
  return set_grammar(draft, path, std::move(*spec));
}

// The schema itself, or its text as Python's clients send it.
ApiResult<GrammarSpec> schema_or_text(const Value& value, const Path& path) {
  if (!value.is_string()) return json_schema_grammar(value, path);
  auto parsed = json::parse(value.get_string(), "the schema");
  if (!parsed) return refuse(path, "is not valid JSON: " + parsed.error().message);
  return json_schema_grammar(*parsed, path);
}

ApiResult<GrammarSpec> choices(const Value& value, const Path& path) {
  GrammarSpec spec{.kind = GrammarKind::kChoice};
  WEIR_ASSIGN(spec.choices, read_texts(value, path, kMaxListed));
  if (spec.choices.empty()) return refuse(path, "is an empty list", "empty");
  for (std::size_t i = 0; i < spec.choices.size(); ++i)
    if (spec.choices[i].empty()) return refuse(Path(path, i), "is an empty text", "empty");
  return spec;
}

ApiResult<GrammarSpec> text_of(GrammarKind kind, const Value& value, const Path& path) {
  GrammarSpec spec{.kind = kind};
  WEIR_ASSIGN(spec.text, read_text(value, path));
  if (spec.text.empty()) return refuse(path, "is empty", "empty");
  return spec;
}

ApiStatus read_json(const Value& value, const Path& path, Draft& draft) { return set(draft, path, schema_or_text(value, path)); }
ApiStatus read_choice(const Value& value, const Path& path, Draft& draft) { return set(draft, path, choices(value, path)); }
ApiStatus read_regex(const Value& value, const Path& path, Draft& draft) {
  return set(draft, path, text_of(GrammarKind::kRegex, value, path));
}
ApiStatus read_lark(const Value& value, const Path& path, Draft& draft) {
  return set(draft, path, text_of(GrammarKind::kLark, value, path));
}
ApiStatus read_json_object(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(const bool wanted, read_bool(value, path));
  return wanted ? set_grammar(draft, path, {.kind = GrammarKind::kJsonObject}) : ApiStatus{};
}

Value json_schema_schema() { return schema(R"({"anyOf": [{"type": "object"}, {"type": "boolean"}, {"type": "string"}]})"); }
Value choice_schema() {
  return schema(R"({"type": "array", "minItems": 1, "maxItems": 4096, "items": {"type": "string", "minLength": 1}})");
}
Value text_schema() { return schema(R"({"type": "string", "minLength": 1})"); }

struct StructuredOutputs {
  Draft* draft = nullptr;
  bool tight = false;
};

template <ApiStatus (*kRead)(const Value&, const Path&, Draft&)>
ApiStatus into_draft(const Value& value, const Path& path, StructuredOutputs& outputs) {
  return kRead(value, path, *outputs.draft);
}

const Fields<StructuredOutputs>& structured_output_fields() {
  static const Fields<StructuredOutputs> fields = [] {
    Fields<StructuredOutputs> f;
    f.value("json", json_schema_schema(), into_draft<read_json>);
    f.value("regex", text_schema(), into_draft<read_regex>);
    f.value("choice", choice_schema(), into_draft<read_choice>);
    f.value("grammar", text_schema(), into_draft<read_lark>).note("In llguidance's dialect of Lark.");
    f.value("json_object", json::Object{{"type", "boolean"}}, into_draft<read_json_object>);
    f.boolean("disable_any_whitespace", [](StructuredOutputs& o, bool v) { o.tight = v; });
    f.ignore({"disable_fallback", "backend"});
    f.only("disable_additional_properties", false, "is not supported: say it in the schema (\"additionalProperties\": false)");
    return f;
  }();
  return fields;
}

ApiStatus read_structured_outputs(const Value& value, const Path& path, Draft& draft) {
  StructuredOutputs outputs{.draft = &draft};
  WEIR_TRY(structured_output_fields().read(value, path, outputs));
  if (outputs.tight && draft.request.options.grammar) draft.request.options.grammar->whitespace = grammar::JsonWhitespace::kNone;
  return {};
}

struct NamedJsonSchema {
  std::string name, description;
  GrammarSpec spec = {.kind = GrammarKind::kJsonObject};
};

const Fields<NamedJsonSchema>& named_schema_fields() {
  static const Fields<NamedJsonSchema> fields = [] {
    Fields<NamedJsonSchema> f;
    f.text("name", [](NamedJsonSchema& s, std::string v) { s.name = std::move(v); });
    f.text("description", [](NamedJsonSchema& s, std::string v) { s.description = std::move(v); });
    f.value("schema", schema(R"({"type": "object"})"), [](const Value& value, const Path& path, NamedJsonSchema& s) -> ApiStatus {
       WEIR_TRY(read_object(value, path));
       WEIR_ASSIGN(s.spec, json_schema_grammar(value, path));
       return {};
     }).note("A keyword that cannot be enforced is an error.");
    // The schema holds always: an answer that breaks it would be worse than a refusal.
    f.boolean("strict", [](NamedJsonSchema&, bool) {});
    return f;
  }();
  return fields;
}

}  // namespace

ApiStatus set_grammar(Draft& draft, const Path& path, GrammarSpec spec) {
  if (draft.request.options.grammar)
    return refuse(path, fmt::format("cannot be given beside '{}': an answer has one form", draft.constrained_by), "conflicting_parameters");
  draft.constrained_by = path.text();
  draft.request.options.grammar = std::move(spec);
  return {};
}

ApiResult<GrammarSpec> json_schema_grammar(const Value& schema, const Path& path) {
  if (!schema.is_object() && !schema.is_bool()) return wrong_type(path, "a JSON schema (an object)", schema);
  return GrammarSpec{.kind = GrammarKind::kJsonSchema, .text = boost::json::serialize(schema)};
}

ApiStatus read_response_format(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  WEIR_ASSIGN(const Value* type, require(*object, "type", path));
  WEIR_ASSIGN(const std::string_view name, read_name(*type, Path(path, "type"), {"text", "json_object", "json_schema"}));
  for (const auto& [key, member] : *object)
    if (key != "type" && !(key == "json_schema" && name == "json_schema") && !member.is_null())
      return refuse(Path(path, key), fmt::format("is not a field of the type '{}'", name), "unknown_parameter");
  if (name == "text") return {};
  if (name == "json_object") return set_grammar(draft, path, {.kind = GrammarKind::kJsonObject});
  WEIR_ASSIGN(const Value* inner, require(*object, "json_schema", path));
  NamedJsonSchema named;
  WEIR_TRY(named_schema_fields().read(*inner, Path(path, "json_schema"), named));
  return set_grammar(draft, path, std::move(named.spec));
}

Value response_format_schema() {
  const Value plain =
      schema(R"({"type": "object", "properties": {"type": {"enum": ["text", "json_object"]}, "json_schema": {"type": "null"}},
                                 "required": ["type"], "additionalProperties": false})");
  json::Object by_schema{{"type", "object"},
                         {"properties", {{"type", {{"enum", {"json_schema"}}}}, {"json_schema", named_schema_fields().schema()}}},
                         {"required", {"type", "json_schema"}},
                         {"additionalProperties", false}};
  return json::Object{{"anyOf", {plain, std::move(by_schema)}}};
}

void add_constraint_fields(Fields<Draft>& f) {
  f.value("response_format", response_format_schema(), read_response_format);
  f.value("structured_outputs", structured_output_fields().schema(), read_structured_outputs);
  f.value("guided_json", json_schema_schema(), read_json).note("A JSON schema, or its text.");
  f.value("guided_regex", text_schema(), read_regex).note("The whole answer matches it.");
  f.value("guided_choice", choice_schema(), read_choice);
  f.value("guided_grammar", text_schema(), read_lark).note("In llguidance's dialect of Lark.");
}

}  // namespace weir::api
