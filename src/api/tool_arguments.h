// SPDX-License-Identifier: Apache-2.0
// Grammars of a function's arguments by its schema: as JSON, between tags, as Python's keywords.
#pragma once

#include <string>

#include "api/output_format_table.h"
#include "api/tool_lark.h"
#include "base/result.h"

namespace weir::api {

// One object by the schema; any object when it says nothing.
Result<std::string> json_arguments(const json::Object& schema);
// kUnsupported names the keyword that cannot be enforced outside of JSON.
Result<std::string> tagged_arguments(LarkWriter& lark, const ArgumentTags& tags, const json::Object& schema);
Result<std::string> python_arguments(LarkWriter& lark, const json::Object& schema);

}  // namespace weir::api
