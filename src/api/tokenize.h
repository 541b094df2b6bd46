// SPDX-License-Identifier: Apache-2.0
// A model's tokenizer over HTTP, in vLLM's shapes, which lm-eval's remote tokenizer reads too: /tokenize (a text or a chat), /detokenize,
// /tokenizer_info, and /v1/chat/completions/render, which shows the prompt that a chat becomes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"
#include "api/generation_request.h"
#include "tokenizer/tokenizer.h"

namespace weir::api {

struct TokenizeRequest {
  std::string model;
  bool chat = false;  // `conversation` holds messages, tools, …; else it is the text
  std::string text;
  GenerationRequest conversation;
  bool add_special = true;  // of a text; a rendered chat has all that it needs unless it is asked for
  bool token_texts = false;
};
// Special tokens that are written out in the text are one token each, as with transformers.
ApiResult<TokenizeRequest> parse_tokenize(std::string_view body);

struct TokenizeAnswer {
  std::vector<TokenId> tokens;
  std::int64_t max_model_len = 0;
};
std::string write_tokenize(const TokenizeAnswer& answer, const tokenizer::Tokenizer* token_texts);

struct DetokenizeRequest {
  std::string model;
  std::vector<TokenId> tokens;
};
ApiResult<DetokenizeRequest> parse_detokenize(std::string_view body);
std::string write_detokenize(std::string_view text);

// What transformers keeps in tokenizer_config.json: special tokens as texts, the chat template.
std::string write_tokenizer_info(const tokenizer::Tokenizer& tokenizer, std::string_view chat_template, std::int64_t max_model_len);

// The request is a chat completion's: parse_chat_completion.
struct RenderAnswer {
  std::string model;
  std::string prompt;
  std::vector<TokenId> tokens;
  std::int64_t max_model_len = 0;
};
std::string write_render(const RenderAnswer& answer);

json::Object tokenize_request_schema();
json::Object tokenize_response_schema();
json::Object detokenize_request_schema();
json::Object detokenize_response_schema();
json::Object tokenizer_info_schema();
json::Object render_response_schema();

}  // namespace weir::api
