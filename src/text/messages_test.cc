// SPDX-License-Identifier: Apache-2.0
#include "text/messages.h"

#include <gtest/gtest.h>

namespace weir::text {
namespace {

std::string written(const json::Array& array) { return boost::json::serialize(array); }

TEST(Messages, TurnsBecomeRoleAndContent) {
  Messages messages;
  messages.system("Be kind.").user("Hi \"you\"").assistant("Hello");
  EXPECT_EQ(written(messages.to_json()),
            R"([{"role":"system","content":"Be kind."},{"role":"user","content":"Hi \"you\""},{"role":"assistant","content":"Hello"}])");
}

TEST(Messages, PopTakesTheLastTurn) {
  Messages messages;
  messages.user("a").user("b");
  messages.pop();
  EXPECT_EQ(written(messages.to_json()), R"([{"role":"user","content":"a"}])");
  messages.pop();
  messages.pop();
  EXPECT_TRUE(messages.empty());
}

TEST(Messages, CallsHaveTheirArgumentsAsObjects) {
  const json::Array calls{
      json::Object{{"id", "1"}, {"type", "function"}, {"function", json::Object{{"name", "f"}, {"arguments", R"({"x": 1})"}}}}};
  Messages messages;
  messages.assistant_calls("", calls).tool("f", "1", "42");
  EXPECT_EQ(written(messages.to_json()),
            R"([{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},)"
            R"({"role":"tool","name":"f","tool_call_id":"1","content":"42"}])");
}

TEST(Messages, ArgumentsThatAreNoObjectStayText) {
  const json::Array calls{json::Object{{"function", json::Object{{"arguments", "not json"}}}}};
  EXPECT_EQ(written(Messages().assistant_calls("so", calls).to_json()),
            R"([{"role":"assistant","content":"so","tool_calls":[{"function":{"arguments":"not json"}}]}])");
}

TEST(Messages, FromOutsideNullKeysAreLeftOut) {
  auto parsed = json::parse(R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}])", "test");
  auto normalized = normalized_messages(*parsed);
  ASSERT_TRUE(normalized);
  EXPECT_EQ(written(*normalized), R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]}])");
}

TEST(Messages, FromOutsideErrorsNameTheMessage) {
  for (const auto& [text, error] : {std::pair{R"({})", "messages: should be an array"},
                                    {R"([1])", "messages[0]: should be an object"},
                                    {R"([{"role":"user"},{"content":"x"}])", "messages[1].role: should be a string"}}) {
    auto normalized = normalized_messages(*json::parse(text, "test"));
    ASSERT_FALSE(normalized);
    EXPECT_EQ(normalized.error().message, error);
  }
}

}  // namespace
}  // namespace weir::text
