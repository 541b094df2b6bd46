// SPDX-License-Identifier: Apache-2.0
// Tools and tool_choice in OpenAI's shape.
#pragma once

#include "api/fields.h"
#include "api/generation_request.h"

namespace weir::api {

inline constexpr std::size_t kMaxTools = 512;

ApiResult<std::vector<Tool>> read_tools(const json::Value& value, const Path& path);
json::Value tools_schema();

// Into request.tool_choice. `allowed_tools` leaves only those tools in request.tools. The tools must have been read.
ApiStatus read_tool_choice(const json::Value& value, const Path& path, GenerationRequest& request);
json::Value tool_choice_schema();

// A name that grammars and templates can hold: [A-Za-z0-9_.:/-], 1 to 128 characters.
ApiStatus check_tool_name(std::string_view name, const Path& path);
// For every dialect: {"type": "function", "function": {…}} of the other fields.
json::Object tool_for_template(const Tool& tool);

}  // namespace weir::api
