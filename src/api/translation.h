// SPDX-License-Identifier: Apache-2.0
// What the dialects beside OpenAI's chat read in the same way: names of tools, lists of tools, stop texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/fields.h"
#include "api/generation_request.h"

namespace weir::api {

// A client's word for a message: cut at a character's border, and nothing but printable ASCII and whole characters of UTF-8.
std::string shown_word(std::string_view text);

// A text or a list of texts, none empty, as sampling takes them.
ApiStatus read_stop_texts(const json::Value& value, const Path& path, std::vector<std::string>& stops);
json::Value stop_texts_schema();

json::Value tool_name_schema();
ApiStatus read_tool_name(const json::Value& value, const Path& path, std::string& name);
// A list of tools, within bounds; `read` makes one of an object. Names must differ. Sets as_given.
using ReadTool = ApiStatus (*)(const json::Object& object, const Path& path, Tool& tool);
ApiStatus read_tool_list(const json::Value& value, const Path& path, ReadTool read, std::vector<Tool>& tools);
bool has_tool(const std::vector<Tool>& tools, std::string_view name);

}  // namespace weir::api
