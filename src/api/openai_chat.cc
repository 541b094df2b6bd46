// SPDX-License-Identifier: Apache-2.0
#include "api/openai_chat.h"

#include <fmt/core.h>

#include "api/openai_messages.h"
#include "api/openai_tools.h"
#include "api/text_fields.h"

namespace weir::api {
namespace {

using json::Value;
using Draft = TextDraft;

ApiStatus read_messages_into(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(draft.request.messages, read_messages(value, path));
  return {};
}

ApiStatus read_tools_into(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(draft.request.tools, read_tools(value, path));
  return {};
}

ApiStatus read_template_arguments(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(const json::Object* object, read_object(value, path));
  for (const auto& [key, argument] : *object) {
    for (const char* own : {"messages", "tools", "add_generation_prompt"})
      if (key == own) return refuse(Path(path, key), "is a field of the request itself");
    draft.request.template_arguments[key] = argument;
  }
  return {};
}

ApiStatus read_documents(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  for (std::size_t i = 0; i < array->size(); ++i) WEIR_TRY(read_object((*array)[i], Path(path, i)));
  draft.request.template_arguments["documents"] = *array;
  return {};
}

ApiStatus read_effort(const Value& value, const Path& path, Draft& draft) {
  WEIR_ASSIGN(draft.effort, read_name(value, path, {"none", "minimal", "low", "medium", "high", "xhigh", "max"}));
  return {};
}

// What makes the prompt.
void add_prompt_fields(Fields<Draft>& f) {
  f.value("messages", messages_schema(), read_messages_into).required();
  f.value("tools", tools_schema(), read_tools_into);
  f.value("chat_template_kwargs", json::Object{{"type", "object"}}, read_template_arguments).note("Arguments for the chat template.");
  f.value("documents", schema(R"({"type": "array", "items": {"type": "object"}})"), read_documents)
      .note("For chat templates that know documents.");
  f.value("reasoning_effort", schema(R"({"enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max"]})"), read_effort);
  f.boolean("add_generation_prompt", [](Draft& d, bool v) { d.add_generation_prompt = v; });
  f.boolean("continue_final_message", [](Draft& d, bool v) {
     d.request.continue_final_message = v;
   }).note("The answer goes on in the last message, which must be the assistant's.");
  f.only("chat_template", nullptr, "cannot be given by a request: the model's own template is used");
}

void add_chat_fields(Fields<Draft>& f) {
  f.value("tool_choice", tool_choice_schema(), [](const Value& value, const Path&, Draft& d) -> ApiStatus {
    d.tool_choice = &value;
    return {};
  });
  f.boolean("parallel_tool_calls", [](Draft& d, bool v) { d.request.tool_choice.parallel = v; });
  f.integer("max_tokens", {1, kMaxTokens}, [](Draft& d, std::int64_t v) {
     d.max_tokens = v;
   }).note("Absent: as many as the context has room for.");
  f.integer("max_completion_tokens", {1, kMaxTokens}, [](Draft& d, std::int64_t v) { d.max_completion_tokens = v; });
  f.boolean("logprobs", [](Draft& d, bool v) { d.chat_logprobs = v; });
  f.integer("top_logprobs", {0, kMaxLogprobs}, [](Draft& d, std::int64_t v) { d.top_logprobs = v; }).note("Only with 'logprobs'.");
  f.boolean("separate_reasoning", [](Draft& d, bool v) {
     d.request.separate_reasoning = v;
   }).note("Reasoning goes into reasoning_content; true by default.");
  f.only("include_reasoning", true, "is not supported: reasoning has a field of its own, which may be ignored");
  f.only("echo", false, "is not supported for chats: the request's messages are known to the client");
  f.only("modalities", json::Array{"text"}, "may only be [\"text\"]");
  f.only("audio", nullptr, "is not supported: answers are text");
  f.only("web_search_options", nullptr, "is not supported: this server does not search the web");
  f.only("functions", nullptr, "is no longer supported: use 'tools'");
  f.only("function_call", nullptr, "is no longer supported: use 'tool_choice'");
  f.only("verbosity", "medium", "is not supported by this server's models");
}

const Fields<Draft>& chat_fields() {
  static const Fields<Draft> fields = [] {
    Fields<Draft> f;
    add_prompt_fields(f);
    add_serving_fields(f);
    add_sampling_fields(f);
    add_length_fields(f);
    add_chat_fields(f);
    add_constraint_fields(f);
    add_stream_fields(f);
    return f;
  }();
  return fields;
}

const Fields<Draft>& prompt_fields() {
  static const Fields<Draft> fields = [] {
    Fields<Draft> f;
    add_prompt_fields(f);
    return f;
  }();
  return fields;
}

ApiStatus finish_prompt(Draft& draft) {
  GenerationRequest& request = draft.request;
  const Path root;
  request.chat = true;
  if (!draft.effort.empty()) apply_reasoning_effort(request, draft.effort);
  request.add_generation_prompt = draft.add_generation_prompt.value_or(!request.continue_final_message);
  if (!request.continue_final_message) return {};
  if (request.add_generation_prompt)
    return refuse(Path(root, "continue_final_message"), "cannot be given with 'add_generation_prompt'", "conflicting_parameters");
  const Value& role = request.messages.back().get_object()["role"];
  if (!role.is_string() || role.get_string() != "assistant")
    return refuse(Path(root, "continue_final_message"), "needs a last message of the role 'assistant'");
  return {};
}

ApiStatus finish_chat(Draft& draft) {
  GenerationRequest& request = draft.request;
  const Path root;
  WEIR_TRY(finish_prompt(draft));
  if (draft.tool_choice) WEIR_TRY(read_tool_choice(*draft.tool_choice, Path(root, "tool_choice"), request));
  if (draft.top_logprobs && !draft.chat_logprobs)
    return refuse(Path(root, "top_logprobs"), "needs 'logprobs' to be true", "conflicting_parameters");
  if (draft.chat_logprobs) request.options.sampling.logprobs = static_cast<std::int32_t>(draft.top_logprobs.value_or(0));
  return finish_text(draft);
}

}  // namespace

ApiResult<GenerationRequest> parse_chat_completion(std::string_view body) {
  WEIR_ASSIGN(const json::Object object, parse_body(body));
  Draft draft;
  WEIR_TRY(chat_fields().read(object, Path(), draft));
  WEIR_TRY(finish_chat(draft));
  return std::move(draft.request);
}

ApiResult<GenerationRequest> parse_chat_prompt(const json::Object& object) {
  Draft draft;
  WEIR_TRY(prompt_fields().read(object, Path(), draft));
  WEIR_TRY(finish_prompt(draft));
  return std::move(draft.request);
}

json::Object chat_request_schema() { return chat_fields().schema(); }
json::Object chat_prompt_schema() { return prompt_fields().schema(); }

}  // namespace weir::api
