// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "api/anthropic_blocks.h"
#include "api/anthropic_messages.h"
#include "api/anthropic_schemas.h"
#include "api/openai_tools.h"
#include "api/text_fields.h"
#include "api/translation.h"

namespace weir::api {
namespace {

using json::Value;

struct Draft {
  GenerationRequest request = {};
  const Value* messages = nullptr;  // these live as long as the request's JSON
  const Value* tool_choice = nullptr;
  std::string system, effort;
  bool thinking = false, hide_thinking = false;
};

// ---- tools

ApiStatus read_tool_type(const Value& value, const Path& path, Tool&) {
  WEIR_ASSIGN(const std::string type, read_text(value, path));
  if (type == "custom") return {};
  return refuse(
      path,
      fmt::format("is '{}', but this server runs no tools of its own: only tools with an input_schema are supported", shown_word(type)),
      "unsupported_tool");
}

const Fields<Tool>& tool_fields() {
  static const Fields<Tool> fields = [] {
    Fields<Tool> f;
    f.value("type", schema(R"({"enum": ["custom"]})"), read_tool_type);
    f.value("name", tool_name_schema(), [](const Value& value, const Path& path, Tool& t) {
       return read_tool_name(value, path, t.name);
     }).required();
    f.text("description", [](Tool& t, std::string v) { t.description = std::move(v); });
    f.value("input_schema", json::Object{{"type", "object"}},
            [](const Value& value, const Path& path, Tool& t) -> ApiStatus {
              WEIR_ASSIGN(const json::Object* object, read_object(value, path));
              t.parameters = *object;
              return {};
            })
        .note("A JSON schema of an object.")
        .required();
    f.boolean("strict", [](Tool& t, bool v) { t.strict = v; }).note("The input is held to the schema by a grammar.");
    f.ignore({"cache_control", "eager_input_streaming", "input_examples"});
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

struct Choice {
  std::string type, name;
  bool alone = false;
};

const Fields<Choice>& choice_fields() {
  static const Fields<Choice> fields = [] {
    Fields<Choice> f;
    f.value("type", schema(R"({"enum": ["auto", "any", "tool", "none"]})"),
            [](const Value& value, const Path& path, Choice& c) -> ApiStatus {
              WEIR_ASSIGN(c.type, read_name(value, path, {"auto", "any", "tool", "none"}));
              return {};
            })
        .required();
    f.text("name", [](Choice& c, std::string v) { c.name = std::move(v); }).note("Of the type 'tool'.");
    f.boolean("disable_parallel_tool_use", [](Choice& c, bool v) { c.alone = v; }).note("At most one call in an answer.");
    return f;
  }();
  return fields;
}

ApiStatus read_anthropic_choice(const Value& value, const Path& path, GenerationRequest& request) {
  using Kind = ToolChoice::Kind;
  Choice choice;
  WEIR_TRY(choice_fields().read(value, path, choice));
  request.tool_choice.parallel = !choice.alone;
  request.tool_choice.kind = choice.type == "auto"   ? Kind::kAuto
                             : choice.type == "any"  ? Kind::kRequired
                             : choice.type == "tool" ? Kind::kNamed
                                                     : Kind::kNone;
  if (choice.type == "any" && request.tools.empty()) return refuse(Path(path, "type"), "is 'any', but the request has no tools");
  if (choice.type != "tool") {
    if (!choice.name.empty()) return refuse(Path(path, "name"), "belongs to the type 'tool'", "conflicting_parameters");
    return {};
  }
  if (choice.name.empty()) return refuse(Path(path, "name"), "is missing", "missing_required_parameter");
  if (!has_tool(request.tools, choice.name)) return refuse(Path(path, "name"), "names none of the request's tools", "unknown_tool");
  request.tool_choice.name = choice.name;
  return {};
}

// ---- thinking, form of the answer

struct Thinking {
  std::string type, display;
  bool budget = false;
};

const Fields<Thinking>& thinking_fields() {
  static const Fields<Thinking> fields = [] {
    Fields<Thinking> f;
    f.value("type", schema(R"({"enum": ["enabled", "disabled", "adaptive", "between_tools"]})"),
            [](const Value& value, const Path& path, Thinking& t) -> ApiStatus {
              WEIR_ASSIGN(t.type, read_name(value, path, {"enabled", "disabled", "adaptive", "between_tools"}));
              return {};
            })
        .required();
    f.integer("budget_tokens", {1, kMaxTokens}, [](Thinking& t, std::int64_t) {
       t.budget = true;
     }).note("A wish that models here do not know of: max_tokens bounds thinking and text together.");
    f.value("display", schema(R"({"enum": ["summarized", "omitted"]})"),
            [](const Value& value, const Path& path, Thinking& t) -> ApiStatus {
              WEIR_ASSIGN(t.display, read_name(value, path, {"summarized", "omitted"}));
              return {};
            })
        .note("'summarized' gives the thinking in full: there is no other model here to shorten it.");
    return f;
  }();
  return fields;
}

ApiStatus read_thinking(const Value& value, const Path& path, Draft& draft) {
  Thinking thinking;
  WEIR_TRY(thinking_fields().read(value, path, thinking));
  if (thinking.type == "enabled" && !thinking.budget)
    return refuse(Path(path, "budget_tokens"), "is missing", "missing_required_parameter");
  draft.thinking = thinking.type != "disabled";
  draft.hide_thinking = thinking.display == "omitted";
  return {};
}

ApiStatus read_form(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  WEIR_ASSIGN(const Value* type, require(*object, "type", path));
  WEIR_TRY(read_name(*type, Path(path, "type"), {"json_schema"}));
  WEIR_ASSIGN(const Value* given, require(*object, "schema", path));
  for (const auto& [key, member] : *object)
    if (key != "type" && key != "schema") return refuse(Path(path, key), "is not a field that is known here", "unknown_parameter");
  WEIR_TRY(read_object(*given, Path(path, "schema")));
  WEIR_ASSIGN(draft.request.options.grammar, json_schema_grammar(*given, Path(path, "schema")));
  return {};
}

const Fields<Draft>& output_fields() {
  static const Fields<Draft> fields = [] {
    Fields<Draft> f;
    f.value("effort", schema(R"({"enum": ["low", "medium", "high", "xhigh", "max"]})"),
            [](const Value& value, const Path& path, Draft& d) -> ApiStatus {
              WEIR_ASSIGN(d.effort, read_name(value, path, {"low", "medium", "high", "xhigh", "max"}));
              return {};
            });
    f.value("format", schema(R"({"type": "object", "properties": {"type": {"enum": ["json_schema"]}, "schema": {"type": "object"}},
                                "required": ["type", "schema"], "additionalProperties": false})"),
            read_form)
        .note("A keyword of the schema that cannot be enforced is an error.");
    return f;
  }();
  return fields;
}

// Edits that would leave parts of the conversation out are refused; to keep all thinking is what is done anyway.
ApiStatus read_context_management(const Value& value, const Path& path, Draft&) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  for (const auto& [key, member] : *object)
    if (key != "edits") return refuse(Path(path, key), "is not a field that is known here", "unknown_parameter");
  const Value* edits = json::find(*object, "edits");
  if (!edits) return {};
  const Path list(path, "edits");
  WEIR_ASSIGN(const json::Array* array, read_array(*edits, list));
  for (std::size_t i = 0; i < array->size(); ++i) {
    WEIR_ASSIGN(const json::Object* edit, read_object((*array)[i], Path(list, i)));
    const Value* keep = json::find(*edit, "keep");
    if (!keep || !keep->is_string() || keep->get_string() != "all")
      return refuse(Path(list, i), "is not supported: this server leaves nothing of a conversation out", "unsupported_parameter");
  }
  return {};
}

// ---- the tables

ApiStatus read_stops(const Value& value, const Path& path, Draft& draft) {
  WEIR_TRY(read_array(value, path));
  return read_stop_texts(value, path, draft.request.options.sampling.stop);
}

// What makes the prompt.
void add_prompt_fields(Fields<Draft>& f) {
  f.text("model", [](Draft& d, std::string v) { d.request.model = std::move(v); }).required();
  f.value("messages", anthropic_messages_schema(), [](const Value& value, const Path&, Draft& d) -> ApiStatus {
     d.messages = &value;
     return {};
   }).required();
  f.value("system", anthropic_text_schema(), [](const Value& value, const Path& path, Draft& d) -> ApiStatus {
    WEIR_ASSIGN(d.system, read_anthropic_text(value, path));
    return {};
  });
  f.value("tools", json::Object{{"type", "array"}, {"maxItems", kMaxTools}, {"items", tool_fields().schema()}},
          [](const Value& value, const Path& path, Draft& d) { return read_tool_list(value, path, read_tool, d.request.tools); });
  f.value("tool_choice", choice_fields().schema(), [](const Value& value, const Path&, Draft& d) -> ApiStatus {
    d.tool_choice = &value;
    return {};
  });
  f.value("thinking", thinking_fields().schema(), read_thinking);
  f.object<Draft>("output_config", output_fields(), [](Draft& d) -> Draft& { return d; });
  f.value("context_management", json::Object{{"type", "object"}}, read_context_management);
  f.ignore({"cache_control", "speed", "user_profile_id", "workspace_id", "anthropic_version", "anthropic_beta", "betas"});
  f.only("mcp_servers", json::Array(), "is not supported: this server calls no other servers");
}

void add_answer_fields(Fields<Draft>& f) {
  f.integer("max_tokens", {1, kMaxTokens},
            [](Draft& d, std::int64_t v) {
              d.request.options.max_tokens = v;
              d.request.max_tokens_given = true;
            })
      .note("Thinking counts.")
      .required();
  f.number("temperature", {0, 2}, [](Draft& d, double v) {
     d.request.options.sampling.temperature = static_cast<float>(v);
     d.request.given.temperature = true;
   }).note("0 takes the likeliest token. Absent: the model's own default, else 1.");
  f.number("top_p", {0, 1, true}, [](Draft& d, double v) {
    d.request.options.sampling.top_p = std::max(static_cast<float>(v), std::numeric_limits<float>::min());
    d.request.given.top_p = true;
  });
  f.integer("top_k", {0, 1 << 30}, [](Draft& d, std::int64_t v) {
    d.request.options.sampling.top_k = static_cast<std::int32_t>(v);
    d.request.given.top_k = true;
  });
  f.value("stop_sequences", schema(R"({"type": "array", "maxItems": 64, "items": {"type": "string", "minLength": 1, "maxLength": 1024}})"),
          read_stops);
  f.boolean("stream", [](Draft& d, bool v) { d.request.stream = v; });
  f.boolean("timings", [](Draft& d, bool v) {
     d.request.timings = v;
   }).note("The answer carries queue, prefill and decode times, cached tokens and an estimate of the energy.");
  f.value("metadata", schema(R"({"type": "object"})"), [](const Value& value, const Path& path, Draft&) -> ApiStatus {
     WEIR_TRY(read_object(value, path));
     return {};
   }).note("Does not change the answer.");
  f.ignore({"service_tier", "inference_geo", "diagnostics"});
  f.only("container", nullptr, "is not supported: this server runs no tools of its own");
}

const Fields<Draft>& message_request_fields() {
  static const Fields<Draft> fields = [] {
    Fields<Draft> f;
    add_prompt_fields(f);
    add_answer_fields(f);
    return f;
  }();
  return fields;
}

const Fields<Draft>& count_fields() {
  static const Fields<Draft> fields = [] {
    Fields<Draft> f;
    add_prompt_fields(f);
    return f;
  }();
  return fields;
}

ApiResult<GenerationRequest> parse(std::string_view body, const Fields<Draft>& fields) {
  WEIR_ASSIGN(const json::Object object, parse_body(body));
  Draft draft;
  WEIR_TRY(fields.read(object, Path(), draft));
  GenerationRequest& request = draft.request;
  const Path root;
  WEIR_ASSIGN(AnthropicConversation conversation, read_anthropic_messages(*draft.messages, Path(root, "messages"), draft.system));
  request.chat = true;
  request.format_field = "output_config.format";
  request.messages = std::move(conversation.messages);
  request.continue_final_message = conversation.ends_with_assistant;
  request.add_generation_prompt = !conversation.ends_with_assistant;
  if (draft.tool_choice) WEIR_TRY(read_anthropic_choice(*draft.tool_choice, Path(root, "tool_choice"), request));
  request.template_arguments["enable_thinking"] = draft.thinking;
  if (!draft.effort.empty()) apply_reasoning_effort(request, draft.effort);
  if (!request.given.temperature) request.options.sampling.temperature = 1;
  request.echo_fields["hide_thinking"] = draft.hide_thinking;
  // Who marks parts for the cache counts what was read from it apart. Within a text the quotes would be escaped.
  request.echo_fields["cache_asked"] = body.find("\"cache_control\"") != std::string_view::npos;
  return std::move(request);
}

}  // namespace

ApiResult<GenerationRequest> parse_anthropic_message(std::string_view body) { return parse(body, message_request_fields()); }

ApiResult<GenerationRequest> parse_anthropic_count(std::string_view body) {
  WEIR_ASSIGN(GenerationRequest request, parse(body, count_fields()));
  request.options.prompt_only = true;
  return request;
}

json::Object anthropic_message_request_schema() { return message_request_fields().schema(); }
json::Object anthropic_count_request_schema() { return count_fields().schema(); }

}  // namespace weir::api
