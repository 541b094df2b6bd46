// SPDX-License-Identifier: Apache-2.0
// Grammars of answers, compiled for a real vocabulary and for one with special tokens: whatever a model that knows nothing writes within
// one is read back as calls whose arguments are instances of their schemas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "api/output_format_table.h"
#include "api/output_parser_testing.h"
#include "grammar/testing_byte_tokenizer.h"
#include "grammar/testing_vocabulary.h"

namespace weir::api {
namespace {

using grammar::GrammarKind;
using grammar::GrammarSpec;
using ::testing::HasSubstr;
using testing::make_tool;

// The real words, and the marks of all formats as special tokens of their own.
class MarkedTokenizer final : public tokenizer::Tokenizer {
 public:
  explicit MarkedTokenizer(const tokenizer::Tokenizer& words) : tokenizer::Tokenizer(words), words_(words) {
    for (const std::string_view mark : {"[TOOL_CALLS]",
                                        "[ARGS]",
                                        "[CALL_ID]",
                                        "[THINK]",
                                        "[/THINK]",
                                        "<|channel|>",
                                        "<|message|>",
                                        "<|constrain|>",
                                        "<|start|>",
                                        "<|end|>",
                                        "<｜tool▁calls▁begin｜>",
                                        "<｜tool▁calls▁end｜>",
                                        "<｜tool▁call▁begin｜>",
                                        "<｜tool▁call▁end｜>",
                                        "<｜tool▁sep｜>",
                                        "<|tool_calls_section_begin|>",
                                        "<|tool_calls_section_end|>",
                                        "<|tool_call_begin|>",
                                        "<|tool_call_end|>",
                                        "<|tool_call_argument_begin|>",
                                        "<|tool_call|>",
                                        "<|tool_call_start|>",
                                        "<|tool_call_end|>",
                                        "<|START_ACTION|>",
                                        "<|END_ACTION|>",
                                        "<|START_THINKING|>",
                                        "<|END_THINKING|>",
                                        "<|tools_prefix|>",
                                        "<|tools_suffix|>",
                                        "<|inner_prefix|>",
                                        "<|inner_suffix|>",
                                        "<|function_call|>",
                                        "<|message_sep|>",
                                        "<|role_sep|>"}) {
      if (std::ranges::find(marks_, mark) == marks_.end()) marks_.emplace_back(mark);
    }
  }
  std::vector<TokenId> encode(std::string_view text, const tokenizer::EncodeOptions& options) const override {
    return words_.encode(text, options);
  }
  std::string decode(std::span<const TokenId> ids, bool special) const override {
    std::string text;
    for (const TokenId id : ids) text += token_bytes(id, special);
    return text;
  }
  std::string token_bytes(TokenId id, bool special) const override {
    if (id < words_.vocab_size()) return words_.token_bytes(id, special);
    return special ? std::string(token_text(id)) : "";
  }
  std::string_view token_text(TokenId id) const override {
    return id < words_.vocab_size() ? words_.token_text(id) : std::string_view(marks_[static_cast<std::size_t>(id - words_.vocab_size())]);
  }
  tokenizer::TokenKind kind(TokenId id) const override {
    return id < words_.vocab_size() ? words_.kind(id) : tokenizer::TokenKind::kControl;
  }
  std::optional<TokenId> find(std::string_view text) const override {
    const auto found = std::ranges::find(marks_, text);
    if (found == marks_.end()) return words_.find(text);
    return words_.vocab_size() + static_cast<TokenId>(found - marks_.begin());
  }
  std::int32_t vocab_size() const override { return words_.vocab_size() + static_cast<std::int32_t>(marks_.size()); }
  std::string description() const override { return "words and marks"; }

 private:
  const tokenizer::Tokenizer& words_;
  std::vector<std::string> marks_;
};

std::shared_ptr<const grammar::Vocabulary> vocabulary(bool special) {
  if (!special) return grammar::testing::smollm2_vocabulary();
  static const auto marked = [] {
    auto tokenizer = std::make_shared<MarkedTokenizer>(grammar::testing::smollm2());
    const std::int32_t size = tokenizer->vocab_size();
    return grammar::Vocabulary::create(std::move(tokenizer), size);
  }();
  return marked;
}

bool is_instance(const json::Value& value, const json::Object& schema) {
  if (const json::Value* list = json::find(schema, "enum")) {
    return std::ranges::any_of(list->as_array(), [&](const json::Value& one) { return one == value; });
  }
  if (const json::Value* any = json::find(schema, "anyOf")) {
    return std::ranges::any_of(any->as_array(), [&](const json::Value& one) { return is_instance(value, one.as_object()); });
  }
  const json::Value* named = json::find(schema, "type");
  const std::string_view type = named ? std::string_view(named->as_string()) : "";
  if (type == "string") return value.is_string();
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_bool();
  if (type == "number") return value.is_number();
  if (type == "integer") {
    if (!value.is_int64() && !value.is_uint64()) return false;
    const json::Value* most = json::find(schema, "maximum");
    const json::Value* least = json::find(schema, "minimum");
    return (!most || *json::to_int(value, "") <= most->as_int64()) && (!least || *json::to_int(value, "") >= least->as_int64());
  }
  if (type == "array") {
    return value.is_array() &&
           std::ranges::all_of(value.as_array(), [&](const json::Value& one) { return is_instance(one, schema.at("items").as_object()); });
  }
  if (!value.is_object()) return false;
  const json::Value* properties = json::find(schema, "properties");
  if (const json::Value* required = json::find(schema, "required")) {
    for (const json::Value& name : required->as_array()) {
      if (!value.as_object().contains(name.as_string())) return false;
    }
  }
  return !properties || std::ranges::all_of(value.as_object(), [&](const auto& member) {
    const json::Value* one = json::find(properties->as_object(), member.key());
    return one && is_instance(member.value(), one->as_object());
  });
}

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

// A model that knows nothing; after a while it picks what brings texts and lists to their end.
// `closing`: a tag that it knows then, too.
std::string write_within(const GrammarSpec& spec, const std::shared_ptr<const grammar::Vocabulary>& words, std::uint64_t seed,
                         std::string_view closing = "", std::size_t most = 700) {
  auto compiled = grammar::compile(spec, words);
  EXPECT_TRUE(compiled) << compiled.error().message << "\n" << spec.text;
  if (!compiled) return "";
  auto matcher = grammar::Matcher::create(*compiled);
  EXPECT_TRUE(matcher) << matcher.error().message;
  std::mt19937_64 random(seed);
  std::string text;
  for (std::size_t n = 0; n < most; ++n) {
    const bool hurried = n > 30;
    if (*matcher->may_end() && (matcher->must_end() || hurried || random() % 8 == 0)) return text;
    const auto mask = *matcher->mask();
    const auto allows = [&](TokenId id) { return (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0; };
    std::vector<TokenId> allowed;
    for (TokenId id = 0; id < words->size(); ++id) {
      if (allows(id) && !words->ends_answer(id)) allowed.push_back(id);
    }
    if (allowed.empty()) return *matcher->may_end() ? text : text + "<nothing is allowed>";
    TokenId token = allowed[random() % allowed.size()];
    if (hurried || random() % 6 == 0) {
      const std::vector<TokenId> tag = closing.empty() ? std::vector<TokenId>() : grammar::spell(grammar::testing::smollm2(), closing);
      if (!tag.empty() && matcher->validate(tag).value_or(0) == tag.size()) {
        for (const TokenId id : tag) EXPECT_TRUE(matcher->accept(id));
        text += closing;
        continue;
      }
      for (const std::string_view end : {"\"", "}", "]", "<", "</", "\n", ")", ">", "0"}) {
        if (const auto id = words->tokenizer().find(end); id && allows(*id) && random() % 2 == 0) {
          token = *id;
          break;
        }
      }
      // A mark comes next where one may.
      for (TokenId id = grammar::testing::smollm2().vocab_size(); id < words->size(); ++id) {
        if (allows(id)) token = id;
      }
    }
    const auto accepted = matcher->accept(token);
    EXPECT_TRUE(accepted) << accepted.error().message;
    if (!accepted) return text;
    text += words->tokenizer().token_bytes(token, true);
  }
  return text + "<no end>";
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
