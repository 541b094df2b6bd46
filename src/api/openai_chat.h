// SPDX-License-Identifier: Apache-2.0
// OpenAI's chat completions: /v1/chat/completions in, chunks or a document out. With the fields that vLLM's clients use beside OpenAI's.
#pragma once

#include <memory>
#include <string_view>

#include "api/generation_request.h"
#include "api/response_writer.h"

namespace weir::api {

// A constraint of the answer (response_format, guided_*) is in options.grammar; where tool_choice forces a call, the call comes first
// and the tools' own grammar holds instead.
ApiResult<GenerationRequest> parse_chat_completion(std::string_view body);
std::unique_ptr<ResponseWriter> make_chat_writer(const GenerationRequest& request);

json::Object chat_request_schema();
json::Object chat_response_schema();

// The fields of a request that make its prompt (messages, tools, …), for /tokenize and other users of the template.
ApiResult<GenerationRequest> parse_chat_prompt(const json::Object& object);
json::Object chat_prompt_schema();

}  // namespace weir::api
