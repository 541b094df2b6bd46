// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "api/anthropic_messages.h"
#include "api/anthropic_schemas.h"
#include "api/translation_testing.h"

namespace weir::api {
namespace {

using namespace testing;

GenerationRequest request(const std::string& fields) {
  auto parsed = parse_anthropic_message(R"({"model": "m", "max_tokens": 10, )" + fields + "}");
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(*parsed) : GenerationRequest();
}

std::string messages(const std::string& fields) { return text_of(request(fields).messages); }

const std::string kHi = R"("messages": [{"role": "user", "content": "hi"}])";

TEST(AnthropicRequestTest, SystemAndContentAsTextOrBlocks) {
  EXPECT_EQ(messages(kHi), R"([{"role":"user","content":"hi"}])");
  EXPECT_EQ(messages(R"("system": "s", )" + kHi), R"([{"role":"system","content":"s"},{"role":"user","content":"hi"}])");
  EXPECT_EQ(messages(R"("system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}],
                        "messages": [{"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]}])"),
            R"([{"role":"system","content":"a\nb"},{"role":"user","content":"c\nd"}])");
}

TEST(AnthropicRequestTest, AConversationWithToolsComesBack) {
  const GenerationRequest made = request(R"("messages": [
      {"role": "user", "content": "weather?"},
      {"role": "assistant", "id": "msg_1", "type": "message", "stop_reason": "tool_use", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "unsigned_msg_1"}, {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "I look.", "citations": null},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}, "caller": null},
        {"type": "tool_use", "id": "t2", "name": "time", "input": {}}]},
      {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "no clock"}], "is_error": true},
        {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"},
        {"type": "text", "text": "Well?"}]}])");
  EXPECT_EQ(text_of(made.messages),
            R"([{"role":"user","content":"weather?"},)"
            R"({"role":"assistant","reasoning_content":"hm","content":"I look.","tool_calls":[)"
            R"({"type":"function","id":"t1","function":{"name":"weather","arguments":{"city":"Rome"}}},)"
            R"({"type":"function","id":"t2","function":{"name":"time","arguments":{}}}]},)"
            R"({"role":"tool","tool_call_id":"t2","name":"time","content":"Error: no clock"},)"
            R"({"role":"tool","tool_call_id":"t1","name":"weather","content":"sunny"},{"role":"user","content":"Well?"}])");
  EXPECT_TRUE(made.add_generation_prompt);
}

TEST(AnthropicRequestTest, TurnsOfOneRoleAreJoined) {
  EXPECT_EQ(messages(R"("system": "a", "messages": [{"role": "system", "content": "b"}, {"role": "user", "content": "c"},
                        {"role": "user", "content": "d"}])"),
            R"([{"role":"system","content":"a\nb"},{"role":"user","content":"c\nd"}])");
}

TEST(AnthropicRequestTest, ALastMessageOfTheAssistantIsContinued) {
  const GenerationRequest made = request(R"("messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "{"}])");
  EXPECT_TRUE(made.continue_final_message);
  EXPECT_FALSE(made.add_generation_prompt);
  const GenerationRequest empty = request(R"("messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}])");
  EXPECT_FALSE(empty.continue_final_message);
  EXPECT_EQ(text_of(empty.messages), R"([{"role":"user","content":"hi"}])");
}

TEST(AnthropicRequestTest, WhatTheEngineIsTold) {
  const GenerationRequest made = request(R"("temperature": 0.5, "top_p": 0.9, "top_k": 7, "stop_sequences": ["a", "b"], "stream": true,
      "metadata": {"user_id": "u"}, "service_tier": "auto", "thinking": {"type": "enabled", "budget_tokens": 1024},
      "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}}, )" +
                                         kHi);
  EXPECT_TRUE(made.chat && made.stream && made.max_tokens_given);
  EXPECT_EQ(made.options.max_tokens, 10);
  EXPECT_EQ(made.options.sampling.temperature, 0.5F);
  EXPECT_EQ(made.options.sampling.top_p, 0.9F);
  EXPECT_EQ(made.options.sampling.top_k, 7);
  EXPECT_EQ(made.options.sampling.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(text_of(made.template_arguments), R"({"enable_thinking":true,"reasoning_effort":"high"})");
  ASSERT_TRUE(made.options.grammar.has_value());
  EXPECT_EQ(made.options.grammar->text, R"({"type":"object"})");

  const GenerationRequest plain = request(kHi);
  EXPECT_EQ(plain.options.sampling.temperature, 1);
  EXPECT_FALSE(plain.given.temperature);
  EXPECT_EQ(text_of(plain.template_arguments), R"({"enable_thinking":false})");
}

TEST(AnthropicRequestTest, ToolsAndTheChoiceOfThem) {
  const std::string tools = R"("tools": [{"name": "a", "description": "A", "input_schema": {"type": "object"}, "cache_control": null},
                                         {"type": "custom", "name": "b", "input_schema": {"type": "object"}, "strict": true}], )";
  const GenerationRequest made = request(tools + kHi);
  ASSERT_EQ(made.tools.size(), 2u);
  EXPECT_EQ(text_of(made.tools[0].as_given),
            R"({"type":"function","function":{"name":"a","description":"A","parameters":{"type":"object"}}})");
  EXPECT_TRUE(made.tools[1].strict);
  EXPECT_TRUE(made.tool_choice.parallel);

  const auto choice = [&](const std::string& value) { return request(R"("tool_choice": )" + value + ", " + tools + kHi).tool_choice; };
  EXPECT_EQ(choice(R"({"type": "auto", "disable_parallel_tool_use": true})").kind, ToolChoice::Kind::kAuto);
  EXPECT_FALSE(choice(R"({"type": "auto", "disable_parallel_tool_use": true})").parallel);
  EXPECT_EQ(choice(R"({"type": "any"})").kind, ToolChoice::Kind::kRequired);
  EXPECT_EQ(choice(R"({"type": "none"})").kind, ToolChoice::Kind::kNone);
  const ToolChoice named = choice(R"({"type": "tool", "name": "b"})");
  EXPECT_EQ(named.kind, ToolChoice::Kind::kNamed);
  EXPECT_EQ(named.name, "b");
}

TEST(AnthropicRequestTest, CountingTakesTheSamePromptWithoutALength) {
  const auto made = parse_anthropic_count(R"({"model": "m", "system": "s", )" + kHi + "}");
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(text_of(made->messages), R"([{"role":"system","content":"s"},{"role":"user","content":"hi"}])");
  EXPECT_TRUE(made->options.prompt_only);
  EXPECT_EQ(parse_anthropic_count(R"({"model": "m", "max_tokens": 5, )" + kHi + "}").error().param, "max_tokens");
  EXPECT_EQ(anthropic_count_document(12), R"({"input_tokens":12})");
}

TEST(AnthropicRequestTest, WrongRequestsNameTheField) {
  const std::string head = R"({"model": "m", "max_tokens": 1, )";
  const std::string user = R"("messages": [{"role": "user", "content": )";
  const std::pair<std::string, std::string_view> cases[] = {
      {"{}", "model"},
      {R"({"model": "m", )" + kHi + "}", "max_tokens"},
      {R"({"model": "m", "max_tokens": 0, )" + kHi + "}", "max_tokens"},
      {R"({"model": "m", "max_tokens": "many", )" + kHi + "}", "max_tokens"},
      {head + R"("x": 1})", "x"},
      {head + R"("messages": []})", "messages"},
      {head + R"("messages": {}})", "messages"},
      {head + R"("messages": [{"role": "assistant", "content": ""}]})", "messages"},
      {head + R"("messages": [{"role": "tool", "content": "x"}]})", "messages[0].role"},
      {head + R"("messages": [{"role": "user"}]})", "messages[0].content"},
      {head + user + "[]}]}", "messages[0].content"},
      {head + user + "5}]}", "messages[0].content"},
      {head + user + R"([{"type": "image", "source": {"type": "base64", "data": ""}}]}]})", "messages[0].content[0].type"},
      {head + user + R"([{"type": "document"}]}]})", "messages[0].content[0].type"},
      {head + user + R"([{"type": "server_tool_use"}]}]})", "messages[0].content[0].type"},
      {head + user + R"([{"type": "poem"}]}]})", "messages[0].content[0].type"},
      {head + user + R"([{"type": "text"}]}]})", "messages[0].content[0].text"},
      {head + user + R"([{"type": "text", "text": 5}]}]})", "messages[0].content[0].text"},
      {head + user + R"([{"type": "tool_use", "id": "x", "name": "a", "input": {}}]}]})", "messages[0].content[0].type"},
      {head + user + R"([{"type": "tool_result", "tool_use_id": "x"}]}]})", "messages[0].content[0].tool_use_id"},
      {head + user + R"([{"type": "tool_result", "tool_use_id": "x", "content": [{"type": "image"}]}]}]})",
       "messages[0].content[0].content[0].type"},
      {head + R"("messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "a", "input": {}}]}]})",
       "messages"},
      {head + R"("messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "a", "input": "{}"}]}]})",
       "messages[0].content[0].input"},
      {head + R"("system": [{"type": "thinking", "thinking": "x"}], )" + kHi + "}", "system[0].type"},
      {head + R"("temperature": 7, )" + kHi + "}", "temperature"},
      {head + R"("top_p": 0, )" + kHi + "}", "top_p"},
      {head + R"("top_k": -1, )" + kHi + "}", "top_k"},
      {head + R"("stop_sequences": [""], )" + kHi + "}", "stop_sequences[0]"},
      {head + R"("stop_sequences": "x", )" + kHi + "}", "stop_sequences"},
      {head + R"("tools": [{"type": "bash_20250124", "name": "bash"}], )" + kHi + "}", "tools[0].type"},
      {head + R"("tools": [{"name": "a"}], )" + kHi + "}", "tools[0].input_schema"},
      {head + R"("tools": [{"name": "", "input_schema": {}}], )" + kHi + "}", "tools[0].name"},
      {head + R"("tool_choice": {"type": "any"}, )" + kHi + "}", "tool_choice.type"},
      {head + R"("tool_choice": {"type": "tool"}, )" + kHi + "}", "tool_choice.name"},
      {head + R"("tool_choice": {"type": "tool", "name": "z"}, )" + kHi + "}", "tool_choice.name"},
      {head + R"("tool_choice": "auto", )" + kHi + "}", "tool_choice"},
      {head + R"("thinking": {"type": "enabled"}, )" + kHi + "}", "thinking.budget_tokens"},
      {head + R"("thinking": {"type": "deep"}, )" + kHi + "}", "thinking.type"},
      {head + R"("output_config": {"format": {"type": "json_schema"}}, )" + kHi + "}", "output_config.format.schema"},
      {head + R"("mcp_servers": [{"url": "http://x"}], )" + kHi + "}", "mcp_servers"},
      {head + R"("container": "c", )" + kHi + "}", "container"},
      {head + R"("context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}, )" + kHi + "}", "context_management.edits[0]"},
  };
  for (const auto& [body, param] : cases) {
    const auto parsed = parse_anthropic_message(body);
    ASSERT_FALSE(parsed.has_value()) << body;
    EXPECT_EQ(parsed.error().status, 400) << body;
    EXPECT_EQ(parsed.error().param, param) << body << ": " << parsed.error().message;
    EXPECT_TRUE(anthropic_error_document(parsed.error()).contains(param));
  }
  EXPECT_TRUE(parse_anthropic_message(head + R"("context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, )" +
                                      kHi + "}")
                  .has_value());
}

TEST(AnthropicRequestTest, TheSchemaNamesWhatIsRequired) {
  const json::Object described = anthropic_message_request_schema();
  EXPECT_EQ(text_of(described.at("required")), R"(["model","messages","max_tokens"])");
  EXPECT_FALSE(described.at("additionalProperties").as_bool());
  EXPECT_FALSE(anthropic_count_request_schema().at("properties").as_object().contains("max_tokens"));
}

}  // namespace
}  // namespace weir::api
