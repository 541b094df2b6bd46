// SPDX-License-Identifier: Apache-2.0
// Anthropic's /v1/messages and /v1/messages/count_tokens: a conversation of content blocks in, content blocks out, as a stream of named
// events or as one message. Keys and versions in headers are serving's matter.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/api_error.h"
#include "api/endpoints.h"
#include "api/generation_request.h"
#include "api/response_writer.h"

namespace weir::api {

// A last message of the assistant is continued. Thinking is off unless the request turns it on, as with Anthropic.
ApiResult<GenerationRequest> parse_anthropic_message(std::string_view body);
std::unique_ptr<ResponseWriter> make_anthropic_writer(const GenerationRequest& request);

// What the same fields would come to as a prompt; nothing is generated.
ApiResult<GenerationRequest> parse_anthropic_count(std::string_view body);
std::string anthropic_count_document(std::int64_t input_tokens);

// {"type": "error", "error": {"type", "message"}}, with Anthropic's types by status.
std::string anthropic_error_document(const ApiError& error);

std::span<const Endpoint> anthropic_endpoints();

}  // namespace weir::api
