// SPDX-License-Identifier: Apache-2.0
// Tools for models that were not trained for them: the functions, and the one way of calling them that the generic parser reads.
#include "api/output_format.h"

namespace weir::api {

std::string tool_prompt(const GenerationRequest& request) {
  if (request.tools.empty() || request.tool_choice.kind == ToolChoice::Kind::kNone) return {};
  std::string text = "You can call these functions, each described by the JSON schema of its parameters:\n";
  for (const Tool& tool : request.tools) {
    json::Object one{{"name", tool.name}};
    if (!tool.description.empty()) one["description"] = tool.description;
    one["parameters"] = tool.parameters;
    text += boost::json::serialize(one) + '\n';
  }
  text +=
      "To call a function, answer with nothing but a JSON object of its name and arguments:\n"
      "{\"name\": \"function_name\", \"arguments\": {\"parameter\": \"value\"}}\n";
  const bool must = request.tool_choice.kind != ToolChoice::Kind::kAuto;
  if (request.tool_choice.parallel) text += "To call several, write one such object on each line.\n";
  if (request.tool_choice.kind == ToolChoice::Kind::kNamed) text += "Call the function \"" + request.tool_choice.name + "\".\n";
  text += must ? "Your answer must be such a call." : "If no function helps, answer in plain text.";
  return text;
}

}  // namespace weir::api
