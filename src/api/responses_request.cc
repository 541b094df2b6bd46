// SPDX-License-Identifier: Apache-2.0
// A request to /v1/responses: fields → GenerationRequest, and what the response object repeats of it.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "api/openai_responses.h"
#include "api/openai_tools.h"
#include "api/responses_items.h"
#include "api/responses_schemas.h"
#include "api/text_fields.h"
#include "api/translation.h"

namespace weir::api {
namespace {

using json::Value;

constexpr std::size_t kMaxMetadata = 16, kMaxMetadataKey = 64, kMaxMetadataValue = 512;
constexpr std::int64_t kMaxTopLogprobs = 20;

// Its table is one of TextDraft, which the shared fields are made for; what is read into is always a Draft.
struct Draft : TextDraft {
  const Value* input = nullptr;  // lives as long as the request's JSON
  std::string instructions, previous;
  json::Object format{{"type", "text"}}, metadata;
  json::Array tools;  // as the response repeats them
  std::string effort_word, summary_word;
  bool store = true, logprobs_wanted = false;
  json::Object echoed;
};
Draft& own(TextDraft& draft) { return static_cast<Draft&>(draft); }

Value or_null(const std::string& text) { return text.empty() ? Value(nullptr) : Value(text); }

ApiStatus read_metadata(const Value& value, const Path& path, TextDraft& draft) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  if (object->size() > kMaxMetadata)
    return refuse(path, fmt::format("has {} entries; {} are allowed", object->size(), kMaxMetadata), "too_many");
  for (const auto& [key, entry] : *object) {
    WEIR_ASSIGN(const std::string text, read_text(entry, Path(path, key)));
    if (count_characters(key) > kMaxMetadataKey || count_characters(text) > kMaxMetadataValue)
      return refuse(Path(path, key), fmt::format("is too long: keys may have {} characters, values {}", kMaxMetadataKey, kMaxMetadataValue),
                    "too_long");
  }
  own(draft).metadata = *object;
  return {};
}

// ---- tools

ApiStatus read_tool_type(const Value& value, const Path& path, Tool&) {
  WEIR_ASSIGN(const std::string type, read_text(value, path));
  if (type == "function") return {};
  return refuse(path, fmt::format("is '{}', but this server runs no tools of its own: only 'function' is supported", shown_word(type)),
                "unsupported_tool");
}

const Fields<Tool>& tool_fields() {
  static const Fields<Tool> fields = [] {
    Fields<Tool> f;
    f.value("type", schema(R"({"enum": ["function"]})"), read_tool_type).required();
    f.value("name", tool_name_schema(), [](const Value& value, const Path& path, Tool& t) {
       return read_tool_name(value, path, t.name);
     }).required();
    f.text("description", [](Tool& t, std::string v) { t.description = std::move(v); });
    f.value("parameters", json::Object{{"type", "object"}}, [](const Value& value, const Path& path, Tool& t) -> ApiStatus {
       WEIR_ASSIGN(const json::Object* object, read_object(value, path));
       t.parameters = *object;
       return {};
     }).note("A JSON schema of an object.");
    f.boolean("strict", [](Tool& t, bool v) { t.strict = v; }).note("Arguments are held to the schema by a grammar; false by default.");
    f.ignore({"output_schema", "cache_control"});
    f.only("defer_loading", false, "is not supported: all tools are known to the model from the start");
    f.only("allowed_callers", json::Array{"direct"}, "may only be [\"direct\"]");
    return f;
  }();
  return fields;
}

ApiStatus read_tool(const json::Object& object, const Path& path, Tool& tool) {
  // The type first: tools of another one have other fields.
  if (const Value* type = json::find(object, "type")) WEIR_TRY(read_tool_type(*type, Path(path, "type"), tool));
  return tool_fields().read(object, path, tool);
}

ApiStatus read_response_tools(const Value& value, const Path& path, TextDraft& draft) {
  WEIR_TRY(read_tool_list(value, path, read_tool, draft.request.tools));
  for (const Tool& tool : draft.request.tools)
    own(draft).tools.push_back(json::Object{{"type", "function"},
                                            {"name", tool.name},
                                            {"description", or_null(tool.description)},
                                            {"parameters", tool.parameters},
                                            {"strict", tool.strict}});
  return {};
}

// {"type": "function", "name": …}, of the request's tools.
ApiResult<std::string> read_named(const json::Object& object, const Path& path, const std::vector<Tool>& tools) {
  WEIR_ASSIGN(const Value* type, require(object, "type", path));
  WEIR_TRY(read_name(*type, Path(path, "type"), {"function"}));
  WEIR_ASSIGN(const Value* name, require(object, "name", path));
  WEIR_ASSIGN(std::string text, read_text(*name, Path(path, "name")));
  for (const auto& [key, value] : object)
    if (key != "type" && key != "name") return refuse(Path(path, key), "is not a field that is known here", "unknown_parameter");
  if (!has_tool(tools, text)) return refuse(Path(path, "name"), "names none of the request's tools", "unknown_tool");
  return text;
}

ApiStatus read_allowed(const json::Object& object, const Path& path, GenerationRequest& request) {
  for (const auto& [key, value] : object)
    if (key != "type" && key != "mode" && key != "tools")
      return refuse(Path(path, key), "is not a field that is known here", "unknown_parameter");
  WEIR_ASSIGN(const Value* mode, require(object, "mode", path));
  WEIR_ASSIGN(const std::string_view word, read_name(*mode, Path(path, "mode"), {"auto", "required"}));
  WEIR_ASSIGN(const Value* list, require(object, "tools", path));
  const Path list_place(path, "tools");
  WEIR_ASSIGN(const json::Array* array, read_array(*list, list_place));
  if (array->empty()) return refuse(list_place, "is an empty list", "empty");
  if (array->size() > kMaxTools) return refuse(list_place, fmt::format("has more than {} entries", kMaxTools), "too_many");
  std::set<std::string> names;
  for (std::size_t i = 0; i < array->size(); ++i) {
    WEIR_ASSIGN(const json::Object* one, read_object((*array)[i], Path(list_place, i)));
    WEIR_ASSIGN(std::string name, read_named(*one, Path(list_place, i), request.tools));
    names.insert(std::move(name));
  }
  std::erase_if(request.tools, [&](const Tool& tool) { return !names.contains(tool.name); });
  request.tool_choice.kind = word == "required" ? ToolChoice::Kind::kRequired : ToolChoice::Kind::kAuto;
  return {};
}

ApiStatus read_choice(const Value& value, const Path& path, GenerationRequest& request) {
  if (value.is_string()) return read_tool_choice(value, path, request);  // words are the same in both of OpenAI's dialects
  if (!value.is_object()) return wrong_type(path, "a string or an object", value);
  const json::Object& object = value.get_object();
  WEIR_ASSIGN(const Value* type, require(object, "type", path));
  WEIR_ASSIGN(const std::string_view name, read_name(*type, Path(path, "type"), {"function", "allowed_tools"}));
  if (name == "allowed_tools") return read_allowed(object, path, request);
  WEIR_ASSIGN(request.tool_choice.name, read_named(object, path, request.tools));
  request.tool_choice.kind = ToolChoice::Kind::kNamed;
  return {};
}

// ---- text, reasoning, include

ApiStatus read_format(const Value& value, const Path& path, TextDraft& draft) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  WEIR_ASSIGN(const Value* type, require(*object, "type", path));
  WEIR_ASSIGN(const std::string_view name, read_name(*type, Path(path, "type"), {"text", "json_object", "json_schema"}));
  own(draft).format = *object;
  for (const auto& [key, member] : *object) {
    const bool known =
        key == "type" || (name == "json_schema" && (key == "name" || key == "schema" || key == "strict" || key == "description"));
    if (!known && !member.is_null())
      return refuse(Path(path, key), fmt::format("is not a field of the type '{}'", name), "unknown_parameter");
  }
  if (name == "text") return {};
  if (name == "json_object") return set_grammar(draft, path, {.kind = grammar::GrammarKind::kJsonObject});
  for (const char* key : {"name", "description"})
    if (const Value* text = json::find(*object, key)) WEIR_TRY(read_text(*text, Path(path, key)));
  // The schema holds whether or not `strict` is set: an answer that breaks it would be worse than a refusal.
  if (const Value* strict = json::find(*object, "strict")) WEIR_TRY(read_bool(*strict, Path(path, "strict")));
  WEIR_TRY(require(*object, "name", path));
  WEIR_ASSIGN(const Value* given, require(*object, "schema", path));
  const Path place(path, "schema");
  WEIR_TRY(read_object(*given, place));
  WEIR_ASSIGN(grammar::GrammarSpec spec, json_schema_grammar(*given, place));
  return set_grammar(draft, path, std::move(spec));
}

const Fields<TextDraft>& text_config_fields() {
  static const Fields<TextDraft> fields = [] {
    Fields<TextDraft> f;
    f.value("format", responses_format_schema(), read_format);
    f.only("verbosity", "medium", "is not supported by this server's models, but for the default 'medium'");
    return f;
  }();
  return fields;
}

const Fields<TextDraft>& reasoning_config_fields() {
  static const Fields<TextDraft> fields = [] {
    Fields<TextDraft> f;
    f.value("effort", schema(R"({"enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max"]})"),
            [](const Value& value, const Path& path, TextDraft& d) -> ApiStatus {
              WEIR_ASSIGN(own(d).effort_word, read_name(value, path, {"none", "minimal", "low", "medium", "high", "xhigh", "max"}));
              return {};
            });
    for (const char* name : {"summary", "generate_summary"})
      f.value(name, schema(R"({"enum": ["auto", "concise", "detailed"]})"),
              [](const Value& value, const Path& path, TextDraft& d) -> ApiStatus {
                WEIR_ASSIGN(own(d).summary_word, read_name(value, path, {"auto", "concise", "detailed"}));
                return {};
              })
          .note("The reasoning itself then comes as its summary, in full: there is no other model here to shorten it.");
    f.ignore({"context", "mode"});
    return f;
  }();
  return fields;
}

ApiStatus read_include(const Value& value, const Path& path, TextDraft& draft) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  for (std::size_t i = 0; i < array->size(); ++i) {
    // Of all but the logprobs there is never anything here: reasoning is not encrypted, other tools than functions do not exist.
    WEIR_ASSIGN(const std::string_view name,
                read_name((*array)[i], Path(path, i),
                          {"message.output_text.logprobs", "reasoning.encrypted_content", "file_search_call.results",
                           "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url",
                           "computer_call_output.output.image_url", "code_interpreter_call.outputs"}));
    if (name == "message.output_text.logprobs") own(draft).logprobs_wanted = true;
  }
  return {};
}

// ---- the table

template <class V>
void repeat(TextDraft& draft, const char* key, V value) {
  own(draft).echoed[key] = std::move(value);
}

void add_conversation_fields(Fields<TextDraft>& f) {
  f.text("model", [](TextDraft& d, std::string v) { d.request.model = std::move(v); }).note("Absent: the server's first model.");
  f.value("input", items_schema(), [](const Value& value, const Path&, TextDraft& d) -> ApiStatus {
    own(d).input = &value;
    return {};
  });
  f.text("instructions", [](TextDraft& d, std::string v) { own(d).instructions = std::move(v); });
  f.text("previous_response_id", [](TextDraft& d, std::string v) { own(d).previous = std::move(v); });
  f.boolean("store", [](TextDraft& d, bool v) { own(d).store = v; }).note("Whether the response is kept for a while; true by default.");
  f.value("tools", json::Object{{"type", "array"}, {"maxItems", kMaxTools}, {"items", tool_fields().schema()}}, read_response_tools);
  f.value("tool_choice", responses_tool_choice_schema(), [](const Value& value, const Path&, TextDraft& d) -> ApiStatus {
    d.tool_choice = &value;
    return {};
  });
  f.boolean("parallel_tool_calls", [](TextDraft& d, bool v) { d.request.tool_choice.parallel = v; });
  f.value("metadata", schema(R"({"type": "object", "maxProperties": 16, "propertyNames": {"maxLength": 64},
                                 "additionalProperties": {"type": "string", "maxLength": 512}})"),
          read_metadata);
}

void add_answer_fields(Fields<TextDraft>& f) {
  f.integer("max_output_tokens", {1, kMaxTokens}, [](TextDraft& d, std::int64_t v) {
     d.max_tokens = v;
   }).note("Reasoning counts. Absent: as many as the context has room for.");
  f.integer("max_tool_calls", {1, kMaxTokens}, [](TextDraft&, std::int64_t) {
   }).note("Of tools that the server runs itself, which there are none of.");
  f.integer("top_logprobs", {0, kMaxTopLogprobs}, [](TextDraft& d, std::int64_t v) { d.top_logprobs = v; });
  f.object<TextDraft>("text", text_config_fields(), [](TextDraft& d) -> TextDraft& { return d; });
  f.object<TextDraft>("reasoning", reasoning_config_fields(), [](TextDraft& d) -> TextDraft& { return d; });
  f.value("include", responses_include_schema(), read_include);
  f.value("truncation", schema(R"({"enum": ["auto", "disabled"]})"), [](const Value& value, const Path& path, TextDraft& d) -> ApiStatus {
     WEIR_ASSIGN(const std::string_view word, read_name(value, path, {"auto", "disabled"}));
     if (word == "auto") d.request.truncate_prompt = 0;
     return {};
   }).note("auto: a prompt that is too long loses its beginning, and the usage says how much; disabled: it is an error.");
}

void add_rest(Fields<TextDraft>& f) {
  f.integer("priority", {-1'000'000, 1'000'000}, [](TextDraft& d, std::int64_t v) {
     d.request.options.priority = static_cast<std::int32_t>(-v);
   }).note("The lower goes first; 0 by default.");
  f.text("cache_salt", [](TextDraft& d, std::string v) { d.request.options.cache_salt = std::move(v); });
  f.text("user", [](TextDraft& d, std::string v) { repeat(d, "user", std::move(v)); });
  f.text("safety_identifier", [](TextDraft& d, std::string v) { repeat(d, "safety_identifier", std::move(v)); });
  f.text("prompt_cache_key", [](TextDraft& d, std::string v) { repeat(d, "prompt_cache_key", std::move(v)); });
  f.ignore({"prompt_cache_retention", "prompt_cache_options", "service_tier"});
  f.only("background", false, "is not supported: an answer is made while its request waits");
  f.only("conversation", nullptr, "is not supported: use previous_response_id");
  f.only("prompt", nullptr, "is not supported: there are no stored prompts");
  f.only("moderation", nullptr, "is not supported");
  f.only("context_management", nullptr, "is not supported");
}

const Fields<TextDraft>& response_fields() {
  static const Fields<TextDraft> fields = [] {
    Fields<TextDraft> f;
    add_conversation_fields(f);
    add_answer_fields(f);
    add_sampling_fields(f);
    add_stream_fields(f);
    add_rest(f);
    return f;
  }();
  return fields;
}

// ---- putting it together

ApiStatus read_previous(const Draft& draft, const ResponsesState& state, ResponsesRequest& request, json::Array& items) {
  const auto previous = state.store ? state.store->get(state.tenant, draft.previous) : nullptr;
  if (!previous)  // status, code and the message's beginning as OpenAI has them: clients look for them
    return std::unexpected(bad_request("previous_response_id",
                                       fmt::format("Previous response with id '{}' not found: it was not stored, was deleted or is too "
                                                   "old; send its items as input",
                                                   shown_word(draft.previous)),
                                       "previous_response_not_found"));
  for (const auto* part : {&previous->context, &previous->input, &previous->output})
    request.context.insert(request.context.end(), part->begin(), part->end());
  for (const StoredItem& item : request.context) {
    auto value = json::parse(*item, "a stored item");
    if (!value) return std::unexpected(from_error({ErrorCode::kInternal, value.error().message}));
    items.push_back(std::move(*value));
  }
  return {};
}

ApiStatus read_conversation(Draft& draft, const ResponsesState& state, ResponsesRequest& request) {
  const Path root, path(root, "input");
  json::Array items;
  if (!draft.previous.empty()) WEIR_TRY(read_previous(draft, state, request, items));
  if (draft.input) {
    WEIR_ASSIGN(request.input, read_items(*draft.input, path));
  }
  if (draft.input && request.input.empty()) return refuse(path, "is an empty list", "empty");
  if (!draft.input && items.empty()) return refuse(path, "is missing", "missing_required_parameter");
  const std::size_t first = items.size();
  items.insert(items.end(), request.input.begin(), request.input.end());
  WEIR_TRY(check_calls(items, first, path));
  draft.request.chat = true;
  draft.request.input_field = "input";
  draft.request.format_field = "text.format";
  draft.request.messages = messages_of(draft.instructions, items);
  if (draft.request.messages.empty()) return refuse(path, "holds nothing that could be answered", "empty");
  return {};
}

json::Object fields_to_repeat(const Draft& draft, const json::Object& given) {
  const GenerationRequest& request = draft.request;
  json::Object echo = draft.echoed;
  // As they were written; what the model's own defaults are is not known here.
  for (const char* key : {"temperature", "top_p", "max_output_tokens", "max_tool_calls"}) {
    const Value* value = json::find(given, key);
    echo[key] = value ? *value : Value(nullptr);
  }
  const Value* choice = json::find(given, "tool_choice");
  echo["tool_choice"] = choice ? *choice : Value("auto");
  echo["instructions"] = or_null(draft.instructions);
  echo["metadata"] = draft.metadata;
  echo["parallel_tool_calls"] = request.tool_choice.parallel;
  echo["tools"] = draft.tools;
  echo["background"] = false;
  echo["previous_response_id"] = or_null(draft.previous);
  echo["reasoning"] = json::Object{{"effort", or_null(draft.effort_word)}, {"summary", or_null(draft.summary_word)}};
  echo["service_tier"] = "default";
  echo["text"] = json::Object{{"format", draft.format}, {"verbosity", "medium"}};
  echo["top_logprobs"] = std::max(request.options.sampling.logprobs, 0);
  echo["truncation"] = request.truncate_prompt ? "auto" : "disabled";
  return echo;
}

}  // namespace

ApiResult<ResponsesRequest> parse_response_request(std::string_view body, const ResponsesState& state) {
  WEIR_ASSIGN(const json::Object object, parse_body(body));
  Draft draft;
  WEIR_TRY(response_fields().read(object, Path(), draft));
  ResponsesRequest request;
  const Path root;
  WEIR_TRY(read_conversation(draft, state, request));
  if (draft.tool_choice) WEIR_TRY(read_choice(*draft.tool_choice, Path(root, "tool_choice"), draft.request));
  if (!draft.effort_word.empty()) apply_reasoning_effort(draft.request, draft.effort_word);
  if (draft.logprobs_wanted || draft.top_logprobs.value_or(0) > 0)
    draft.request.options.sampling.logprobs = static_cast<std::int32_t>(draft.top_logprobs.value_or(0));
  WEIR_TRY(finish_text(draft));
  draft.request.echo_fields = fields_to_repeat(draft, object);
  request.store = draft.store && state.store;
  request.summary = !draft.summary_word.empty();
  request.generation = std::move(draft.request);
  return request;
}

// Something must be there to be answered.
json::Object responses_request_schema() {
  json::Object described = response_fields().schema();
  described["anyOf"] = schema(R"([{"required": ["input"], "properties": {"input": {"type": ["string", "array"]}}},
    {"required": ["previous_response_id"], "properties": {"previous_response_id": {"type": "string"}}}])");
  return described;
}

}  // namespace weir::api
