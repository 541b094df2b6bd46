// SPDX-License-Identifier: Apache-2.0
// A conversation in OpenAI's shape, checked field by field and brought to the shape that chat templates read: content is one text,
// "developer" is "system", arguments of calls are objects, an answer of a tool carries the tool's name.
#pragma once

#include "api/fields.h"

namespace weir::api {

ApiResult<json::Array> read_messages(const json::Value& value, const Path& path);
json::Value messages_schema();

// Text parts ({"type": "text", "text": …}) or a plain text; parts are joined by line breaks, as vLLM does. Pictures, sound and files are
// refused by name.
ApiResult<std::string> read_content(const json::Value& value, const Path& path);

}  // namespace weir::api
