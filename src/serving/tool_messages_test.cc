// SPDX-License-Identifier: Apache-2.0
#include "serving/tool_messages.h"

#include <gtest/gtest.h>

namespace weir::serving {
namespace {

api::GenerationRequest with_tool(std::string_view messages) {
  api::GenerationRequest request;
  request.chat = true;
  request.messages = json::parse(messages, "messages").value().as_array();
  api::Tool tool;
  tool.name = "get_weather";
  request.tools.push_back(tool);
  return request;
}

TEST(ToolMessages, TheToolsStandInTheSystemMessage) {
  auto request = with_tool(R"([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}])");
  write_tools_as_text(request);
  ASSERT_EQ(request.messages.size(), 2u);
  const std::string system(request.messages[0].at("content").as_string());
  EXPECT_TRUE(system.starts_with("Be kind.\n\n"));
  EXPECT_NE(system.find("get_weather"), std::string::npos);

  request = with_tool(R"([{"role": "user", "content": "Hi"}])");
  write_tools_as_text(request);
  ASSERT_EQ(request.messages.size(), 2u);
  EXPECT_EQ(request.messages[0].at("role"), "system");
  request.tools.clear();
  request.messages = json::parse(R"([{"role": "user", "content": "Hi"}])", "messages").value().as_array();
  write_tools_as_text(request);
  EXPECT_EQ(request.messages.size(), 1u);
}

TEST(ToolMessages, EarlierCallsStandInTheText) {
  auto request = with_tool(R"([{"role": "user", "content": "Hi"},
    {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}}]},
    {"role": "tool", "tool_call_id": "1", "content": "sunny"},
    {"role": "assistant", "content": "And:", "tool_calls": [{"function": {"name": "f", "arguments": {}}}, 7]}])");
  request.tool_choice.kind = api::ToolChoice::Kind::kNone;
  write_tools_as_text(request);
  EXPECT_EQ(request.messages[1].at("content"), R"({"name":"get_weather","arguments":{"city":"Rome"}})");
  EXPECT_FALSE(request.messages[1].as_object().contains("tool_calls"));
  EXPECT_EQ(request.messages[3].at("content"), "And:\n{\"name\":\"f\",\"arguments\":{}}");
}

}  // namespace
}  // namespace weir::serving
