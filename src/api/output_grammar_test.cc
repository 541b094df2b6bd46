// SPDX-License-Identifier: Apache-2.0
// Grammars of answers, compiled for a real vocabulary and for one with special tokens: whatever a model that knows nothing writes within
// one is read back as calls whose arguments are instances of their schemas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/output_format_table.h"
#include "api/output_grammar_testing.h"
#include "api/output_parser_testing.h"

namespace weir::api {
namespace {

using grammar::GrammarKind;
using grammar::GrammarSpec;
using ::testing::HasSubstr;
using testing::is_instance;
using testing::make_tool;
using testing::vocabulary;
using testing::write_within;

GenerationRequest forced_request() {
  GenerationRequest request;
  request.chat = true;
  request.tool_choice.kind = ToolChoice::Kind::kRequired;
  request.tools.push_back(make_tool("book", R"({"type": "object", "properties": {
      "city": {"type": "string"}, "nights": {"type": "integer", "minimum": 1, "maximum": 30}, "class": {"enum": ["eco", "first"]},
      "late": {"type": "boolean"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
      "guests": {"type": "array", "maxItems": 2, "items": {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}},
      "required": ["age"], "additionalProperties": false}}}, "required": ["city", "nights", "class"], "additionalProperties": false})"));
  request.tools.push_back(make_tool("ping", R"({"type": "object", "properties": {}, "additionalProperties": false})"));
  return request;
}

GrammarSpec grammar_of(std::string_view format, const GenerationRequest& request, std::string_view prompt = "") {
  const OutputFormat& row = *find_output_format(format);
  auto made = answer_grammar(row, request, prompt, vocabulary(row.special)->tokenizer());
  EXPECT_TRUE(made) << format << ": " << made.error().message;
  EXPECT_TRUE(made && *made) << format;
  return made && *made ? **made : GrammarSpec{.kind = GrammarKind::kChoice, .choices = {"none"}};
}

void expect_calls(const OutputFormat& format, const GenerationRequest& request, std::string_view prompt, const std::string& text) {
  const testing::Answer answer = testing::parse(format, request, prompt, {text});
  EXPECT_EQ(answer.content, "");
  ASSERT_FALSE(answer.calls.empty());
  for (const auto& call : answer.calls) {
    const auto tool = std::ranges::find(request.tools, call.name, &Tool::name);
    ASSERT_NE(tool, request.tools.end()) << call.name;
    const auto arguments = json::parse(call.arguments, "arguments");
    ASSERT_TRUE(arguments) << call.arguments;
    EXPECT_TRUE(is_instance(*arguments, tool->parameters)) << call.arguments;
  }
}

TEST(AnswerGrammar, WhatIsWrittenWithinItIsReadBackAsCalls) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  const GenerationRequest request = forced_request();
  for (const OutputFormat& format : output_formats()) {
    // Reasoning has its own test: a model that knows nothing does not end it.
    const std::string prompt = format.channels.message.empty() ? "<|im_start|>assistant\n" + std::string(format.reasoning.close) : "";
    const GrammarSpec spec = grammar_of(format.name, request, prompt);
    const std::string closing(format.calls.empty() ? "" : format.calls[0].tags.parameter_close);
    int whole = 0;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const std::string text = write_within(spec, vocabulary(format.special), seed, closing);
      if (text.ends_with("<no end>")) continue;
      ++whole;
      SCOPED_TRACE(std::string(format.name) + ": " + text + "\n" + spec.text);
      expect_calls(format, request, prompt, text);
    }
    EXPECT_GT(whole, 0) << format.name;
  }
}

TEST(AnswerGrammar, OneCallWhenOneIsAskedFor) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  GenerationRequest request = forced_request();
  request.tool_choice.kind = ToolChoice::Kind::kNamed;
  request.tool_choice.name = "ping";
  for (const OutputFormat& format : output_formats()) {
    const std::string prompt = std::string(format.reasoning.close);
    const std::string text = write_within(grammar_of(format.name, request, prompt), vocabulary(format.special), 1);
    SCOPED_TRACE(std::string(format.name) + ": " + text);
    const testing::Answer answer = testing::parse(format, request, prompt, {text});
    ASSERT_EQ(answer.calls.size(), 1u);
    EXPECT_EQ(answer.calls[0].name, "ping");
    EXPECT_EQ(answer.content, "");
  }
}

bool takes(const GrammarSpec& spec, std::string_view text) {
  auto compiled = grammar::compile(spec, grammar::testing::smollm2_vocabulary());
  EXPECT_TRUE(compiled) << compiled.error().message << "\n" << spec.text;
  auto matcher = grammar::Matcher::create(*compiled);
  return matcher && grammar::testing::accept_text(*matcher, text) && matcher->may_end().value_or(false);
}

TEST(AnswerGrammar, ReasoningMayComeBeforeACall) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  const std::string call = "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>";
  const GrammarSpec begun = grammar_of("hermes", forced_request(), "assistant\n<think>\n");
  EXPECT_TRUE(takes(begun, "I see < this\n</think>\n\n" + call));
  EXPECT_TRUE(takes(begun, "</think>" + call + "\n" + call));
  EXPECT_FALSE(takes(begun, call));
  EXPECT_FALSE(takes(begun, "I see</think>Hello"));
  const GrammarSpec may = grammar_of("hermes", forced_request());
  EXPECT_TRUE(takes(may, call));
  EXPECT_TRUE(takes(may, "<think>\nI see\n</think>\n\n" + call));
  EXPECT_FALSE(takes(may, "Hello" + call));
}

TEST(AnswerGrammar, ChannelsMayBeginWithAnalysis) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  const auto& words = *vocabulary(true);
  const auto takes_marked = [&](const GrammarSpec& spec, std::string_view text) {
    auto compiled = grammar::compile(spec, vocabulary(true));
    EXPECT_TRUE(compiled) << compiled.error().message << "\n" << spec.text;
    auto matcher = grammar::Matcher::create(*compiled);
    while (!text.empty()) {
      const std::size_t mark = text.starts_with("<|") ? text.find("|>") + 2 : 0;
      const std::string_view piece = text.substr(0, mark ? mark : text.find("<|"));
      const auto tokens = mark ? std::vector<TokenId>{*words.tokenizer().find(piece)} : grammar::spell(words.tokenizer(), piece);
      for (const TokenId id : tokens) {
        if (!matcher->accept(id)) return false;
      }
      text.remove_prefix(piece.size());
    }
    return matcher->may_end().value_or(false);
  };
  const std::string call = "<|channel|>commentary to=functions.ping <|constrain|>json<|message|>{}";
  const std::string analysis = "<|channel|>analysis<|message|>I see<|end|><|start|>assistant";
  const GrammarSpec forced = grammar_of("gpt-oss", forced_request(), "<|start|>assistant");
  EXPECT_TRUE(takes_marked(forced, call));
  EXPECT_TRUE(takes_marked(forced, analysis + call));
  EXPECT_FALSE(takes_marked(forced, analysis + "<|channel|>final<|message|>Hello"));
  GenerationRequest request;
  request.options.grammar = GrammarSpec{.kind = GrammarKind::kJsonObject};
  const GrammarSpec json = grammar_of("gpt-oss", request, "<|start|>assistant<|channel|>analysis<|message|>");
  EXPECT_TRUE(takes_marked(json, "I see<|end|><|start|>assistant<|channel|>final<|message|>{}"));
  EXPECT_FALSE(takes_marked(json, "I see<|end|><|start|>assistant<|channel|>final<|message|>Hello"));
  GenerationRequest strict = forced_request();
  strict.tool_choice.kind = ToolChoice::Kind::kAuto;
  strict.tools[1].strict = true;
  const GrammarSpec free = grammar_of("gpt-oss", strict, "<|start|>assistant");
  EXPECT_TRUE(takes_marked(free, analysis + call));
  EXPECT_TRUE(takes_marked(free, analysis + "<|channel|>final<|message|>Hello"));
  EXPECT_FALSE(takes_marked(free, call.substr(0, call.size() - 1) + "\"a\": 1}"));
  const GrammarSpec kimi = grammar_of("kimi-k2", strict, "</think>");
  EXPECT_TRUE(takes_marked(kimi, "Hello"));
  EXPECT_TRUE(
      takes_marked(kimi,
                   "Hi<|tool_calls_section_begin|><|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
                   "<|tool_calls_section_end|>"));
  EXPECT_FALSE(takes_marked(kimi, "Hi<|tool_calls_section_begin|>"));
}

TEST(AnswerGrammar, StrictToolsHoldCallsOnceBegun) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  GenerationRequest request = forced_request();
  request.tool_choice.kind = ToolChoice::Kind::kAuto;
  const auto& tokenizer = grammar::testing::smollm2();
  EXPECT_FALSE(answer_grammar(*find_output_format("hermes"), request, "</think>", tokenizer)->has_value());
  request.tools[0].strict = request.tools[1].strict = true;
  const GrammarSpec spec = grammar_of("hermes", request, "</think>");
  EXPECT_TRUE(takes(spec, "Hello there <tool_cal> <b>"));
  EXPECT_TRUE(takes(spec, ""));
  EXPECT_TRUE(takes(spec, "Let me.\n<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_TRUE(takes(
      spec,
      "<tool_call>\n{\"name\": \"book\", \"arguments\": {\"city\": \"</tool_call>\", \"nights\": 2, \"class\": \"eco\"}}\n</tool_call>"));
  EXPECT_FALSE(takes(spec, "<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"a\": 1}}\n</tool_call>"));
  EXPECT_FALSE(takes(spec, "Let me.\n<tool_call>\nping\n</tool_call>"));
  const GrammarSpec bare = grammar_of("llama3", request);
  EXPECT_TRUE(takes(bare, "Hello {\"name\": 1}"));
  EXPECT_TRUE(takes(bare, "{\"name\": \"ping\", \"parameters\": {}}"));
  EXPECT_FALSE(takes(bare, "{\"name\": \"ping\", \"parameters\": {\"a\": 1}}"));
}

TEST(AnswerGrammar, ResponseFormatsBeginWhereReasoningEnds) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  GenerationRequest request;
  request.options.grammar = GrammarSpec{
      .kind = GrammarKind::kJsonSchema,
      .text = R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})"};
  const GrammarSpec begun = grammar_of("think", request, "<think>\n");
  EXPECT_TRUE(takes(begun, "What is a? {\n</think>\n\n{\"a\": 1}"));
  EXPECT_FALSE(takes(begun, "{\"a\": 1}"));
  EXPECT_FALSE(takes(begun, "Hm</think>{\"b\": 1}"));
  EXPECT_EQ(grammar_of("think", request, "<think>\n\n</think>\n\n"), *request.options.grammar);
  EXPECT_EQ(grammar_of("none", request), *request.options.grammar);
  request.options.grammar = GrammarSpec{.kind = GrammarKind::kChoice, .choices = {"yes", "no\n\"x\""}};
  EXPECT_TRUE(takes(grammar_of("think", request, "<think>"), "Hm</think>no\n\"x\""));
  request.options.grammar = GrammarSpec{.kind = GrammarKind::kLark, .text = "start: a+\na: \"x\" | \"{\""};
  EXPECT_TRUE(takes(grammar_of("think", request, "<think>"), "Hm</think>x{x"));
  EXPECT_FALSE(takes(grammar_of("think", request, "<think>"), "Hm</think>y"));
  request.options.grammar = GrammarSpec{.kind = GrammarKind::kRegex, .text = "[0-9]+"};
  const auto refused = answer_grammar(*find_output_format("think"), request, "<think>", grammar::testing::smollm2());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 400);
}

TEST(AnswerGrammar, AResponseFormatLeavesCallsPossible) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  GenerationRequest request = forced_request();
  request.tool_choice.kind = ToolChoice::Kind::kAuto;
  request.options.grammar = GrammarSpec{.kind = GrammarKind::kJsonObject};
  const GrammarSpec spec = grammar_of("hermes", request, "</think>");
  EXPECT_TRUE(takes(spec, "{\"x\": [1]}"));
  EXPECT_TRUE(takes(spec, "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>"));
  EXPECT_FALSE(takes(spec, "Hello"));
}

TEST(AnswerGrammar, WhatCannotBeEnforcedIsNamed) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  GenerationRequest request = forced_request();
  const auto& tokenizer = grammar::testing::smollm2();
  const auto refusal = [&](std::string_view format, std::string_view schema) {
    request.tools = {make_tool("f", schema)};
    const auto made = answer_grammar(*find_output_format(format), request, "</think>", tokenizer);
    if (!made) return made.error().message;
    const auto compiled = grammar::compile(**made, grammar::testing::smollm2_vocabulary());
    return compiled ? std::string() : compiled.error().message;
  };
  EXPECT_THAT(refusal("qwen3-coder", R"({"properties": {"a": {"type": "string", "pattern": "x"}}})"), HasSubstr("\"pattern\""));
  EXPECT_THAT(refusal("qwen3-coder", R"({"properties": {}, "minProperties": 1})"), HasSubstr("\"minProperties\""));
  EXPECT_THAT(refusal("qwen3-coder", R"({"properties": {"a>\"": {"type": "string"}}})"), HasSubstr("property name"));
  EXPECT_THAT(refusal("pythonic", R"({"properties": {"a b": {"type": "integer"}}})"), HasSubstr("a b"));
  EXPECT_THAT(refusal("hermes", R"({"type": "object", "properties": {"a": {"type": "array", "contains": {"type": "null"}}}})"),
              HasSubstr("contains"));
  EXPECT_THAT(refusal("qwen3-coder", R"({"properties": {"a": {"type": "array", "contains": {"type": "null"}}}})"), HasSubstr("contains"));
  EXPECT_THAT(refusal("hermes", R"({"type": "string"})"), HasSubstr("\"type\""));
  EXPECT_EQ(refusal("hermes", R"({"type": "object", "properties": {"a\"}/%json <x>\n": {"type": "integer"}}})"), "");
  request.tools = {make_tool("bad\"name", "{}")};
  EXPECT_THAT(answer_grammar(*find_output_format("hermes"), request, "", tokenizer).error().message, HasSubstr("bad\"name"));
  request.tools.clear();
  EXPECT_EQ(answer_grammar(*find_output_format("hermes"), request, "", tokenizer).error().param, "tool_choice");
}

}  // namespace
}  // namespace weir::api
