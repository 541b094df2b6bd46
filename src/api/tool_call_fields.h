// SPDX-License-Identifier: Apache-2.0
// The table of a call within a message, {"id", "type": "function", "function": …}, which OpenAI's dialect and Ollama's share; what stands
// in "function" differs. For the parsers of messages only.
#pragma once

#include <string>
#include <utility>

#include "api/fields.h"

namespace weir::api {

// `function` must live as long as the table.
template <class Call>
Fields<Call> tool_call_fields(const Fields<Call>& function) {
  Fields<Call> f;
  f.text("id", [](Call& c, std::string v) { c.id = std::move(v); });
  f.value("type", schema(R"({"enum": ["function"]})"), [](const json::Value& value, const Path& path, Call&) -> ApiStatus {
    WEIR_TRY(read_name(value, path, {"function"}));
    return {};
  });
  f.template object<Call>("function", function, [](Call& c) -> Call& { return c; }).required();
  return f;
}

}  // namespace weir::api
