// SPDX-License-Identifier: Apache-2.0
// What chat completions take and refuse, and that every field arrives where it belongs.
#include "api/openai_chat.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "api/fields.h"

namespace weir::api {
namespace {

// A request with one message and these members.
std::string with(std::string_view members) {
  return fmt::format(R"({{"messages": [{{"role": "user", "content": "Hi"}}]{}{}}})", members.empty() ? "" : ", ", members);
}

GenerationRequest good(std::string_view body) {
  auto request = parse_chat_completion(body);
  EXPECT_TRUE(request.has_value()) << body << ": " << request.error().message;
  return request ? std::move(*request) : GenerationRequest{};
}

void expect_refused(std::string_view body, std::string_view param, std::string_view message_part) {
  const auto request = parse_chat_completion(body);
  ASSERT_FALSE(request.has_value()) << body;
  EXPECT_EQ(request.error().status, 400) << body;
  EXPECT_EQ(request.error().param, param) << body;
  EXPECT_NE(request.error().message.find(message_part), std::string::npos) << request.error().message;
}

std::string text_of(const json::Value& value) { return boost::json::serialize(value); }

TEST(ChatRequest, DefaultsAreOpenAis) {
  const GenerationRequest r = good(with(""));
  EXPECT_TRUE(r.chat);
  EXPECT_EQ(r.model, "");
  EXPECT_EQ(r.options.sampling.temperature, 1);
  EXPECT_FALSE(r.given.temperature);
  EXPECT_EQ(r.options.sampling.top_p, 1);
  EXPECT_EQ(r.options.sampling.logprobs, -1);
  EXPECT_EQ(r.options.answers, 1);
  EXPECT_EQ(r.options.max_tokens, 0);
  EXPECT_FALSE(r.max_tokens_given);
  EXPECT_FALSE(r.stream);
  EXPECT_TRUE(r.add_generation_prompt);
  EXPECT_TRUE(r.separate_reasoning);
  EXPECT_FALSE(r.options.grammar.has_value());
  EXPECT_EQ(r.tool_choice.kind, ToolChoice::Kind::kAuto);
}

TEST(ChatRequest, EveryFieldArrives) {
  const GenerationRequest r = good(with(R"("model": "m", "temperature": 0.5, "top_p": 0.25, "top_k": 7, "min_p": 0.125, "typical_p": 0.75,
    "repetition_penalty": 1.5, "frequency_penalty": -1, "presence_penalty": 2, "logit_bias": {"12": -100, "7": 1.5}, "seed": 42,
    "stop": ["a", "b"], "stop_token_ids": [5, 6], "max_completion_tokens": 9, "min_tokens": 3, "n": 4, "ignore_eos": true,
    "logprobs": true, "top_logprobs": 2, "stream": true, "stream_options": {"include_usage": true}, "timings": true,
    "return_token_ids": true, "skip_special_tokens": false, "priority": 5, "cache_salt": "s", "lora": "l",
    "chat_template_kwargs": {"custom": 1}, "truncate_prompt_tokens": 100, "reasoning_effort": "low", "separate_reasoning": false,
    "parallel_tool_calls": false, "user": "u", "metadata": {"a": "b"}, "store": true, "service_tier": "auto")"));
  const sampling::SamplingParams& s = r.options.sampling;
  EXPECT_EQ(r.model, "m");
  EXPECT_EQ(s.temperature, 0.5f);
  EXPECT_TRUE(r.given.temperature && r.given.top_p && r.given.top_k && r.given.min_p && r.given.typical_p && r.given.repetition_penalty);
  EXPECT_EQ(s.top_p, 0.25f);
  EXPECT_EQ(s.top_k, 7);
  EXPECT_EQ(s.min_p, 0.125f);
  EXPECT_EQ(s.typical_p, 0.75f);
  EXPECT_EQ(s.repetition_penalty, 1.5f);
  EXPECT_EQ(s.frequency_penalty, -1);
  EXPECT_EQ(s.presence_penalty, 2);
  EXPECT_EQ(s.logit_bias, (std::vector<std::pair<TokenId, float>>{{12, -100.0f}, {7, 1.5f}}));
  EXPECT_EQ(s.seed, 42u);
  EXPECT_TRUE(r.seed_given);
  EXPECT_EQ(s.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(s.stop_tokens, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(s.logprobs, 2);
  EXPECT_EQ(r.options.max_tokens, 9);
  EXPECT_TRUE(r.max_tokens_given);
  EXPECT_EQ(r.options.min_tokens, 3);
  EXPECT_EQ(r.options.answers, 4);
  EXPECT_TRUE(r.options.ignore_end);
  EXPECT_TRUE(r.stream && r.stream_usage && !r.continuous_usage && r.timings && r.return_token_ids && r.show_special);
  EXPECT_EQ(r.options.priority, -5);  // the lower goes first for clients, the higher for the engine
  EXPECT_EQ(r.options.cache_salt, "s");
  EXPECT_EQ(r.options.adapter, "l");
  EXPECT_EQ(text_of(r.template_arguments), R"({"custom":1,"reasoning_effort":"low","enable_thinking":true})");
  EXPECT_EQ(r.truncate_prompt, 100);
  EXPECT_FALSE(r.separate_reasoning);
  EXPECT_FALSE(r.tool_choice.parallel);
}

TEST(ChatRequest, SeedsAreAny64Bits) {
  EXPECT_EQ(good(with(R"("seed": -1)")).options.sampling.seed, ~std::uint64_t{0});
  EXPECT_EQ(good(with(R"("seed": 18446744073709551615)")).options.sampling.seed, ~std::uint64_t{0});
  EXPECT_EQ(good(with(R"("seed": 3.0)")).options.sampling.seed, 3u);
  expect_refused(with(R"("seed": 0.5)"), "seed", "an integer");
}

TEST(ChatRequest, MessagesBecomeWhatTemplatesRead) {
  const GenerationRequest r = good(R"({"messages": [
    {"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]},
    {"role": "user", "content": "é", "name": "Ann"},
    {"role": "assistant", "content": null, "refusal": null, "annotations": [], "audio": null, "function_call": null,
     "tool_calls": [{"id": "c1", "type": "function", "index": 0, "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "42"}]},
    {"role": "assistant", "content": "It is 42.", "reasoning_content": "Hm."}]})");
  EXPECT_EQ(json::Value(r.messages), schema(R"([
    {"role": "system", "content": "Be\nbrief."},
    {"role": "user", "content": "é", "name": "Ann"},
    {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}, "id": "c1"}]},
    {"role": "tool", "content": "42", "tool_call_id": "c1", "name": "f"},
    {"role": "assistant", "content": "It is 42.", "reasoning_content": "Hm."}])"))
      << text_of(r.messages);
}

TEST(ChatRequest, BadMessagesAreNamed) {
  expect_refused(R"({})", "messages", "is missing");
  expect_refused(R"({"messages": []})", "messages", "empty");
  expect_refused(R"({"messages": "Hi"})", "messages", "an array");
  expect_refused(R"({"messages": [{"content": "x"}]})", "messages[0].role", "is missing");
  expect_refused(R"({"messages": [{"role": "robot", "content": "x"}]})", "messages[0].role", "one of 'system'");
  expect_refused(R"({"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": 1}]})", "messages[1].content", "a number");
  expect_refused(R"({"messages": [{"role": "user"}]})", "messages[0].content", "is missing");
  expect_refused(R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]})",
                 "messages[0].content[0].type", "text only");
  expect_refused(R"({"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]})",
                 "messages[0].content[0].type", "text only");
  expect_refused(R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "messages[0].content[0].text", "is missing");
  expect_refused(R"({"messages": [{"role": "tool", "content": "x"}]})", "messages[0].tool_call_id", "is missing");
  expect_refused(R"({"messages": [{"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}]})",
                 "messages[0].tool_calls", "assistant");
  expect_refused(R"({"messages": [{"role": "assistant", "tool_calls": [{"type": "function"}]}]})", "messages[0].tool_calls[0].function",
                 "is missing");
}

constexpr const char* kTools = R"("tools": [
  {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true}},
  {"type": "function", "function": {"name": "g"}}])";

TEST(ChatRequest, ToolsAndChoices) {
  using Kind = ToolChoice::Kind;
  const auto choice = [](std::string_view value) { return good(with(fmt::format(R"({}, "tool_choice": {})", kTools, value))); };
  const GenerationRequest r = good(with(kTools));
  ASSERT_EQ(r.tools.size(), 2u);
  EXPECT_EQ(r.tools[0].name, "f");
  EXPECT_EQ(r.tools[0].description, "d");
  EXPECT_TRUE(r.tools[0].strict);
  EXPECT_EQ(text_of(r.tools[0].as_given),
            R"({"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}})");
  EXPECT_TRUE(r.tools[1].parameters.empty());
  EXPECT_EQ(choice(R"("none")").tool_choice.kind, Kind::kNone);
  EXPECT_EQ(choice(R"("required")").tool_choice.kind, Kind::kRequired);
  const GenerationRequest named = choice(R"({"type": "function", "function": {"name": "g"}})");
  EXPECT_EQ(named.tool_choice.kind, Kind::kNamed);
  EXPECT_EQ(named.tool_choice.name, "g");
  const GenerationRequest allowed = choice(
      R"({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}})");
  EXPECT_EQ(allowed.tool_choice.kind, Kind::kRequired);
  ASSERT_EQ(allowed.tools.size(), 1u);
  EXPECT_EQ(allowed.tools[0].name, "g");
}

TEST(ChatRequest, BadToolsAreNamed) {
  expect_refused(with(R"("tools": [{"type": "custom", "custom": {"name": "f"}}])"), "tools[0].type", "custom");
  expect_refused(with(R"("tools": [{"type": "function", "function": {"name": "a b"}}])"), "tools[0].function.name", "letters");
  expect_refused(with(R"("tools": [{"type": "function", "function": {"name": "f", "parameters": []}}])"), "tools[0].function.parameters",
                 "an object");
  expect_refused(with(R"("tools": [{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "f"}}])"),
                 "tools[1]", "'f'");
  expect_refused(with(R"("tool_choice": "required")"), "tool_choice", "no tools");
  expect_refused(with(fmt::format(R"({}, "tool_choice": "maybe")", kTools)), "tool_choice", "'none'");
  expect_refused(with(fmt::format(R"({}, "tool_choice": {{"type": "function", "function": {{"name": "h"}}}})", kTools)),
                 "tool_choice.function.name", "none of the request's tools");
  expect_refused(with(R"("functions": [])"), "functions", "use 'tools'");
}

TEST(ChatRequest, AnswersMayBeConstrainedInOneWay) {
  using grammar::GrammarKind;
  const auto grammar = [](std::string_view members) { return good(with(members)).options.grammar.value_or(grammar::GrammarSpec{}); };
  EXPECT_FALSE(good(with(R"("response_format": {"type": "text"})")).options.grammar.has_value());
  EXPECT_EQ(grammar(R"("response_format": {"type": "json_object"})").kind, GrammarKind::kJsonObject);
  const auto schema_of = grammar(
      R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "object", "x": 1}}})");
  EXPECT_EQ(schema_of.kind, GrammarKind::kJsonSchema);
  EXPECT_EQ(schema_of.text, R"({"type":"object","x":1})");
  EXPECT_EQ(grammar(R"("guided_json": "{\"type\": \"integer\"}")").text, R"({"type":"integer"})");
  EXPECT_EQ(grammar(R"("guided_regex": "[ab]+")").kind, GrammarKind::kRegex);
  EXPECT_EQ(grammar(R"("guided_choice": ["yes", "no"])").choices, (std::vector<std::string>{"yes", "no"}));
  EXPECT_EQ(grammar(R"("guided_grammar": "start: \"a\"")").kind, GrammarKind::kLark);
  const auto tight = grammar(R"("structured_outputs": {"json": {"type": "object"}, "disable_any_whitespace": true})");
  EXPECT_EQ(tight.kind, GrammarKind::kJsonSchema);
  EXPECT_EQ(tight.whitespace, grammar::JsonWhitespace::kNone);

  expect_refused(with(R"("guided_regex": "a", "guided_choice": ["b"])"), "guided_choice", "beside 'guided_regex'");
  expect_refused(with(R"("structured_outputs": {"regex": "a", "json_object": true})"), "structured_outputs.json_object", "one form");
  expect_refused(with(R"("response_format": {"type": "xml"})"), "response_format.type", "'json_schema'");
  expect_refused(with(R"("response_format": {"type": "json_schema"})"), "response_format.json_schema", "is missing");
  expect_refused(with(R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": 3}})"),
                 "response_format.json_schema.schema", "an object");
  expect_refused(with(R"("response_format": {"type": "json_object", "schema": {}})"), "response_format.schema", "not a field");
  expect_refused(with(R"("guided_choice": [])"), "guided_choice", "empty");
  expect_refused(with(R"("guided_json": "{")"), "guided_json", "not valid JSON");
}

TEST(ChatRequest, FieldsThatContradictEachOther) {
  expect_refused(with(R"("top_logprobs": 3)"), "top_logprobs", "'logprobs'");
  expect_refused(with(R"("max_tokens": 3, "max_completion_tokens": 4)"), "max_tokens", "differ");
  expect_refused(with(R"("max_tokens": 3, "min_tokens": 4)"), "min_tokens", "above the 3");
  expect_refused(with(R"("stream": true, "prompt_logprobs": 1)"), "prompt_logprobs", "streamed");
  expect_refused(with(R"("continue_final_message": true)"), "continue_final_message", "assistant");
  const std::string last = R"({"messages": [{"role": "assistant", "content": "The"}], "continue_final_message": true)";
  EXPECT_FALSE(good(last + "}").add_generation_prompt);
  expect_refused(last + R"(, "add_generation_prompt": true})", "continue_final_message", "add_generation_prompt");
}

TEST(ChatRequest, WhatIsNotKnownOrOutOfRangeIsRefused) {
  expect_refused(with(R"("temprature": 1)"), "temprature", "did you mean 'temperature'");
  expect_refused(with(R"("temperature": -0.1)"), "temperature", "at least 0");
  expect_refused(with(R"("top_p": 0)"), "top_p", "above 0");
  expect_refused(with(R"("n": 0)"), "n", "at least 1 and at most 128");
  expect_refused(with(R"("n": 1e100)"), "n", "at most 128");
  expect_refused(with(R"("max_tokens": 0)"), "max_tokens", "at least 1");
  expect_refused(with(R"("logit_bias": {"x": 1})"), "logit_bias.x", "digits");
  expect_refused(with(R"("logit_bias": {"1": 101})"), "logit_bias.1", "at most 100");
  expect_refused(with(R"("stop": "")"), "stop", "empty");
  expect_refused(with(R"("stop": ["a", 1])"), "stop[1]", "a string");
  expect_refused(with(R"("stop_token_ids": [-1])"), "stop_token_ids[0]", "at least 0");
  expect_refused(with(R"("audio": {"voice": "x"})"), "audio", "text");
  expect_refused(with(R"("modalities": ["text", "audio"])"), "modalities", "[\"text\"]");
  expect_refused(with(R"("chat_template": "{{ 1 }}")"), "chat_template", "own template");
  expect_refused(with(R"("chat_template_kwargs": {"messages": []})"), "chat_template_kwargs.messages", "itself");
  expect_refused(with(R"("stream_options": {"include": 1})"), "stream_options.include", "not a field");
  expect_refused(with(R"("reasoning_effort": "huge")"), "reasoning_effort", "'low'");
}

}  // namespace
}  // namespace weir::api
