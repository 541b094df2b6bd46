// SPDX-License-Identifier: Apache-2.0
// The fields that all requests for text share: sampling, lengths, constraints, streaming, scheduling. A request is read into a draft,
// since some fields only make sense beside others, whatever their order; finish_* then turns the draft into the GenerationRequest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/fields.h"
#include "api/generation_request.h"

namespace weir::api {

// Bounds of what a request may ask for, beside those of the engine.
inline constexpr std::int64_t kMaxTokens = 1 << 30;
inline constexpr std::int64_t kMaxLogprobs = 100;  // per token: an answer's size is this times its length
inline constexpr std::int64_t kMaxPrompts = 4096;
inline constexpr std::int64_t kMaxChoices = 4096;  // prompts times answers to each

struct TextDraft {
  GenerationRequest request = {};
  std::optional<std::int64_t> max_tokens = {}, max_completion_tokens = {};
  std::optional<std::int64_t> logprobs = {};  // completions: how many
  bool chat_logprobs = false;                 // chat: whether, and how many
  std::optional<std::int64_t> top_logprobs = {};
  std::optional<std::int64_t> best_of = {};
  std::optional<bool> add_generation_prompt = {};
  std::string constrained_by = {};  // the field that gave the grammar
  bool effort_given = false;
  std::string effort = {};
  const json::Value* tool_choice = nullptr;  // read once the tools are known; lives as long as the request's JSON
  std::optional<bool> parallel_calls = {};
};

void add_sampling_fields(Fields<TextDraft>& fields);    // temperature … logit_bias, seed, stop
void add_length_fields(Fields<TextDraft>& fields);      // max_tokens, min_tokens, n, …
void add_constraint_fields(Fields<TextDraft>& fields);  // response_format, guided_*, structured_outputs
void add_stream_fields(Fields<TextDraft>& fields);      // stream, stream_options, timings, return_token_ids
void add_serving_fields(Fields<TextDraft>& fields);     // model, priority, cache_salt, lora, … and what is ignored

// max_tokens, checks across fields; to be called last.
ApiStatus finish_text(TextDraft& draft);

// Text in Python's or JavaScript's sense of length.
std::size_t count_characters(std::string_view text);

// One grammar per request: `name` is the field, for the message.
ApiStatus set_grammar(TextDraft& draft, const Path& path, grammar::GrammarSpec spec);
// {"type": "json_schema", …}; also used by other dialects.
ApiStatus read_response_format(const json::Value& value, const Path& path, TextDraft& draft);
json::Value response_format_schema();
// A schema for answers: an object, or true/false.
ApiResult<grammar::GrammarSpec> json_schema_grammar(const json::Value& schema, const Path& path);

// "none", "minimal", "low", "medium", "high", …: what chat templates know it as. What chat_template_kwargs says stays.
void apply_reasoning_effort(GenerationRequest& request, std::string_view effort);

ApiResult<std::vector<TokenId>> read_ids(const json::Value& value, const Path& path);
json::Value ids_schema();  // a list of token ids
// A text or ids, or a list of either: prompts of completions, inputs of embeddings. An empty list is an error.
ApiResult<std::vector<PromptInput>> read_prompts(const json::Value& value, const Path& path);
json::Value prompts_schema();

}  // namespace weir::api
