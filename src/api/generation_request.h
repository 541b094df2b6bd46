// SPDX-License-Identifier: Apache-2.0
// What every dialect's request for text comes down to: whose turn it is, with which tools, under which constraints, and how the answer
// is to be sent. Dialects fill it (parse_* in their headers); serving turns it into CompletionRequests.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "engine/completion.h"

namespace weir::api {

struct Tool {
  std::string name;
  std::string description;
  json::Object parameters;  // a JSON schema; empty object = anything
  bool strict = false;      // the arguments are held to the schema by a grammar
  json::Object as_given;    // in OpenAI's shape {"type": "function", "function": {…}}, for the template
};

struct ToolChoice {
  enum class Kind { kAuto, kNone, kRequired, kNamed } kind = Kind::kAuto;
  std::string name = {};  // of kNamed
  bool parallel = true;   // several calls in one answer
};

// Which sampling parameters the request gave. The others come from the model's own defaults (generation_config.json); where it has
// none, from OpenAI's: temperature 1 and no filter, which is what options.sampling then holds already.
struct SamplingGiven {
  bool temperature = false, top_k = false, top_p = false, min_p = false, typical_p = false, repetition_penalty = false;
};

// One prompt of a text completion, or of an embedding: text, or the ids themselves.
using PromptInput = std::variant<std::string, std::vector<TokenId>>;

struct GenerationRequest {
  std::string model;

  // A conversation (then `prompts` is empty), in the shape that chat templates read (text::normalized_messages) …
  bool chat = false;
  json::Array messages = {};
  std::vector<Tool> tools = {};
  ToolChoice tool_choice = {};
  json::Object template_arguments = {};  // chat_template_kwargs, e.g. enable_thinking
  bool add_generation_prompt = true;     // false: only with continue_final_message or for rendering
  bool continue_final_message = false;   // the answer goes on in the last message
  // … or texts to be continued, each with its own answers.
  std::vector<PromptInput> prompts = {};
  bool add_special = true;  // to text prompts; BOS etc. as the tokenizer wants them

  // Everything that the engine is told, but for the prompt. `grammar` is of a response format; those of tools are made by the output
  // format of the model. `tenant` and `priority` are capped by serving.
  engine::CompletionRequest options = {};
  SamplingGiven given = {};
  bool seed_given = false;
  // logit_bias by text of a token, resolved by serving where the dialect allows it; ids are in options.sampling.
  std::int32_t best_of = 0;  // 0 = options.answers; else so many are made, the best n returned
  std::optional<std::int64_t> truncate_prompt =
      {};  // keep the last n tokens, 0: as many as fit; absent: a prompt that is too long is an error
  bool max_tokens_given = false;

  bool separate_reasoning = true;  // reasoning goes into its own field
  bool show_special = false;       // special tokens are part of the text

  bool stream = false;
  bool stream_usage = false;  // a last chunk with the usage
  bool continuous_usage = false;
  bool echo = false;     // the prompt before the answer
  bool timings = false;  // the response carries times, cached tokens, energy estimate
  bool return_token_ids = false;
  std::int32_t prompt_logprobs_shown = -1;  // as a list of their own; options.prompt_logprobs may be more, for echo
  bool tokens_as_ids = false;               // logprobs name tokens as "token_id:123"

  // The dialect's own names of where the text and its format stand, for errors that are found behind the parser.
  std::string_view input_field = {};  // empty: "messages" of a conversation, else "prompt"
  std::string_view format_field = "response_format";
  std::string_view input_name() const { return !input_field.empty() ? input_field : chat ? "messages" : "prompt"; }

  json::Object echo_fields = {};  // what the dialect's answer repeats (Responses: metadata, instructions, …)
};

}  // namespace weir::api
