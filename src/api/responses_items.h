// SPDX-License-Identifier: Apache-2.0
// The items that conversations of /v1/responses are made of: messages, calls of functions, what functions answered, reasoning. Read
// strictly into one shape, which is what the store keeps and input_items lists; from there into the messages that templates read.
#pragma once

#include <span>
#include <string_view>

#include "api/fields.h"

namespace weir::api {

// A text is one message of the user. Kinds of items that need what this server does not have are refused by name.
ApiResult<json::Array> read_items(const json::Value& input, const Path& path);
json::Value items_schema();

// Checked items, in order, as messages of a chat. Instructions and the system messages that follow them at once become one. Reasoning, a
// text and calls that follow one another are one turn of the assistant.
json::Array messages_of(std::string_view instructions, const json::Array& items);

// Each function_call_output must answer a function_call before it: items from `first` on are checked, those before are of earlier
// responses.
ApiStatus check_calls(const json::Array& items, std::size_t first, const Path& path);

}  // namespace weir::api
