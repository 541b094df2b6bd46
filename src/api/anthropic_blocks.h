// SPDX-License-Identifier: Apache-2.0
// Anthropic's messages of content blocks, checked, and brought to the shape that chat templates read: results of tools become messages of
// their own, turns of one role that follow one another become one.
#pragma once

#include <string>

#include "api/fields.h"

namespace weir::api {

struct AnthropicConversation {
  json::Array messages = {};
  bool ends_with_assistant = false;  // to be continued
};

// `system`: the request's own, may be empty.
ApiResult<AnthropicConversation> read_anthropic_messages(const json::Value& value, const Path& path, const std::string& system);
json::Value anthropic_messages_schema();

// A text, or a list of text blocks; joined by line breaks.
ApiResult<std::string> read_anthropic_text(const json::Value& value, const Path& path);
json::Value anthropic_text_schema();

}  // namespace weir::api
