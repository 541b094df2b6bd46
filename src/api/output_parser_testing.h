// SPDX-License-Identifier: Apache-2.0
// For this folder's tests only: a request with a few tools, and answers put together from what a parser gives.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/output_format.h"
#include "base/check.h"

namespace weir::api::testing {

struct Answer {
  struct Call {
    std::string id, name, arguments;
  };
  std::string content = {}, reasoning = {};
  std::vector<Call> calls = {};

  void add(const ParsedDelta& delta) {
    content += delta.content;
    reasoning += delta.reasoning;
    for (const ToolCallDelta& part : delta.tool_calls) {
      const auto index = static_cast<std::size_t>(part.index);
      const bool begins = index == calls.size();
      // A call begins once, with its id and name; later parts carry neither.
      WEIR_CHECK(index <= calls.size() && begins == !part.id.empty() && begins == !part.name.empty(), "call {}", part.index);
      if (begins) calls.push_back({part.id, part.name, ""});
      WEIR_CHECK(index + 1 == calls.size(), "call {} goes on after the next has begun", part.index);
      calls[index].arguments += part.arguments;
    }
  }
};

inline Tool make_tool(std::string name, std::string_view schema, bool strict = false) {
  return {.name = std::move(name),
          .description = "",
          .parameters = json::parse(schema, "schema")->as_object(),
          .strict = strict,
          .as_given = {}};
}

inline GenerationRequest request_with_tools() {
  GenerationRequest request;
  request.chat = true;
  request.tools.push_back(make_tool("get_weather", R"({"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"], "additionalProperties": false})"));
  request.tools.push_back(make_tool("ping", R"({"type": "object", "properties": {}, "additionalProperties": false})"));
  request.tools.push_back(make_tool("set", R"({"type": "object", "properties": {
      "on": {"type": "boolean"}, "level": {"anyOf": [{"type": "number"}, {"type": "null"}]},
      "tags": {"type": "array", "items": {"type": "string"}}, "extra": {"type": "object"}, "any": {}}})"));
  return request;
}

inline Answer parse(const OutputFormat& format, const GenerationRequest& request, std::string_view prompt,
                    const std::vector<std::string_view>& pieces, std::string seed = "seed") {
  const auto parser = OutputParser::create(format, request, prompt, std::move(seed));
  Answer answer;
  for (const std::string_view piece : pieces) answer.add(parser->push(piece));
  answer.add(parser->finish());
  WEIR_CHECK(parser->called_tools() == !answer.calls.empty(), "called_tools");
  return answer;
}

inline Answer parse_whole(std::string_view format, std::string_view text) {
  return parse(*find_output_format(format), request_with_tools(), "", {text});
}

}  // namespace weir::api::testing
