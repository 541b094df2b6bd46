// SPDX-License-Identifier: Apache-2.0
// OpenAI's older text completions: /v1/completions in, chunks or a document out. What evaluation harnesses use: echo, log probabilities
// of prompts, ids as prompts, many prompts at once.
#pragma once

#include <memory>
#include <string_view>

#include "api/generation_request.h"
#include "api/response_writer.h"

namespace weir::api {

// max_tokens is 16 when absent, as with OpenAI; 0 generates nothing (options.prompt_only). With echo and logprobs the engine is asked
// for the prompt's log probabilities too.
ApiResult<GenerationRequest> parse_completion(std::string_view body);

// Tokens are named by the vocabulary's own text ("Ġthe", "▁the"), in `tokens` and as keys of `top_logprobs`: a key names one token only,
// and clients look it up in tokenizer.json. `text_offset` counts the characters of the text. In a stream with logprobs each token is an
// event, and the last one carries the finish reason.
std::unique_ptr<ResponseWriter> make_completion_writer(const GenerationRequest& request);

json::Object completion_request_schema();
json::Object completion_response_schema();

}  // namespace weir::api
