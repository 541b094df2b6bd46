// SPDX-License-Identifier: Apache-2.0
// What each format's texts come to, at every split of each text.
#include <gtest/gtest.h>

#include <random>

#include "api/output_format.h"
#include "api/output_format_table.h"
#include "api/output_parser_calls.h"
#include "api/output_parser_testing.h"

namespace weir::api {
namespace {

using testing::Answer;
using testing::parse_whole;
using testing::request_with_tools;

struct Case {
  std::string_view format, text;
  std::string_view content, reasoning;
  std::vector<std::pair<std::string_view, std::string_view>> calls;  // name, arguments
  std::string_view prompt = "";
};

constexpr std::string_view kParis = R"({"city": "Paris"})";

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
#include "api/output_parser_cases.inc"
  };
  return all;
}

std::string show(const Answer& answer) {
  std::string text = "content[" + answer.content + "] reasoning[" + answer.reasoning + "]";
  for (const auto& call : answer.calls) text += " call[" + call.name + " " + call.arguments + "]";
  return text;
}

std::string expected(const Case& one) {
  Answer answer{.content = std::string(one.content), .reasoning = std::string(one.reasoning)};
  for (const auto& [name, arguments] : one.calls) answer.calls.push_back({"", std::string(name), std::string(arguments)});
  return show(answer);
}

Answer parse(const Case& one, const std::vector<std::string_view>& pieces) {
  return testing::parse(*find_output_format(one.format), request_with_tools(), one.prompt, pieces);
}

TEST(OutputParser, ReadsWhatEachFormatWrites) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(std::string(one.format) + ": " + std::string(one.text));
    ASSERT_TRUE(find_output_format(one.format));
    EXPECT_EQ(show(parse(one, {one.text})), expected(one));
  }
}

TEST(OutputParser, GivesTheSameAtEverySplit) {
  std::mt19937 random(1);
  for (const Case& one : cases()) {
    SCOPED_TRACE(std::string(one.format) + ": " + std::string(one.text));
    const Answer whole = parse(one, {one.text});
    for (std::size_t cut = 0; cut <= one.text.size(); ++cut) {
      EXPECT_EQ(show(parse(one, {one.text.substr(0, cut), one.text.substr(cut)})), show(whole)) << "cut at " << cut;
    }
    std::vector<std::string_view> bytes;
    for (std::size_t i = 0; i < one.text.size(); ++i) bytes.push_back(one.text.substr(i, 1));
    const Answer split = parse(one, bytes);
    EXPECT_EQ(show(split), show(whole));
    for (std::size_t i = 0; i < split.calls.size(); ++i) EXPECT_EQ(split.calls[i].id, whole.calls[i].id);
    for (int round = 0; round < 8; ++round) {
      std::vector<std::string_view> pieces;
      for (std::string_view rest = one.text; !rest.empty();) {
        const std::size_t size = std::min<std::size_t>(1 + random() % 9, rest.size());
        pieces.push_back(rest.substr(0, size));
        rest.remove_prefix(size);
      }
      EXPECT_EQ(show(parse(one, pieces)), show(whole));
    }
  }
}

// A call's arguments are JSON and whole whenever the text is; and every byte of a text without calls is there.
TEST(OutputParser, ArgumentsAreJson) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(std::string(one.format) + ": " + std::string(one.text));
    for (const auto& [name, arguments] : one.calls) {
      if (arguments.ends_with('}')) {
        EXPECT_TRUE(json::parse(arguments, "arguments")) << arguments;
      }
    }
  }
}

// Cut anywhere, as by a limit of tokens: what had come of the arguments is a beginning of what would have come.
TEST(OutputParser, ATextCutAnywhereKeepsWhatHadCome) {
  for (const Case& one : cases()) {
    if (one.calls.size() != 1) continue;
    SCOPED_TRACE(std::string(one.format) + ": " + std::string(one.text));
    const Answer whole = parse(one, {one.text});
    for (std::size_t cut = 0; cut < one.text.size(); ++cut) {
      const auto parser = OutputParser::create(*find_output_format(one.format), request_with_tools(), one.prompt, "seed");
      Answer answer;
      answer.add(parser->push(one.text.substr(0, cut)));
      if (answer.calls.empty()) continue;
      ASSERT_EQ(answer.calls.size(), 1u);
      EXPECT_EQ(answer.calls[0].name, whole.calls[0].name);
      EXPECT_TRUE(whole.calls[0].arguments.starts_with(answer.calls[0].arguments)) << answer.calls[0].arguments;
    }
  }
}

TEST(OutputParser, ArgumentsComeBeforeTheCallHasEnded) {
  const auto parser = OutputParser::create(*find_output_format("hermes"), request_with_tools(), "", "seed");
  Answer answer;
  answer.add(parser->push(R"(<tool_call>{"name": "get_weather", "arguments": {"city": "Par)"));
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls[0].name, "get_weather");
  EXPECT_EQ(answer.calls[0].arguments, R"({"city": "Par)");
  EXPECT_TRUE(parser->called_tools());
  const auto tags = OutputParser::create(*find_output_format("qwen3-coder"), request_with_tools(), "", "seed");
  Answer tagged;
  tagged.add(tags->push("<tool_call>\n<function=get_weather>\n<parameter=city>\nPar"));
  ASSERT_EQ(tagged.calls.size(), 1u);
  EXPECT_EQ(tagged.calls[0].arguments, R"({"city": "Par)");
}

TEST(OutputParser, IdsAreFixedBySeedAndPlace) {
  const std::string_view text = R"(<tool_call>{"name": "ping"}</tool_call><tool_call>{"name": "ping"}</tool_call>)";
  const Answer first = parse_whole("hermes", text), again = parse_whole("hermes", text);
  ASSERT_EQ(first.calls.size(), 2u);
  EXPECT_EQ(first.calls[0].id, again.calls[0].id);
  EXPECT_NE(first.calls[0].id, first.calls[1].id);
  EXPECT_EQ(first.calls[0].id.size(), 29u);
  EXPECT_TRUE(first.calls[0].id.starts_with("call_"));
  EXPECT_NE(testing::parse(*find_output_format("hermes"), request_with_tools(), "", {text}, "other").calls[0].id, first.calls[0].id);
  const Answer mistral = parse_whole("mistral", R"([TOOL_CALLS]ping[ARGS]{})");
  ASSERT_EQ(mistral.calls.size(), 1u);
  EXPECT_EQ(mistral.calls[0].id.size(), 9u);
}

TEST(OutputParser, WithoutToolsOrWithChoiceNoneNothingIsACall) {
  const std::string text = R"(<tool_call>{"name": "ping"}</tool_call>)";
  GenerationRequest request = request_with_tools();
  request.tool_choice.kind = ToolChoice::Kind::kNone;
  EXPECT_EQ(testing::parse(*find_output_format("hermes"), request, "", {text}).content, text);
  EXPECT_EQ(testing::parse(*find_output_format("hermes"), GenerationRequest(), "", {text}).content, text);
}

TEST(OutputParser, WithoutParallelCallsASecondOneIsContent) {
  GenerationRequest request = request_with_tools();
  request.tool_choice.parallel = false;
  const std::string call = R"(<tool_call>{"name": "ping", "arguments": {}}</tool_call>)";
  const Answer answer = testing::parse(*find_output_format("hermes"), request, "", {call + call});
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.content, call);
}

TEST(OutputParser, ReasoningStaysInTheContentWhenAsked) {
  GenerationRequest request = request_with_tools();
  request.separate_reasoning = false;
  const auto content = [&](std::string_view format, std::string_view text, std::string_view prompt = "") {
    return testing::parse(*find_output_format(format), request, prompt, {text}).content;
  };
  EXPECT_EQ(content("hermes", "<think>\nI see\n</think>\n\nHello"), "<think>\nI see\n</think>\n\nHello");
  EXPECT_EQ(content("hermes", "I see\n</think>\n\nHello", "<think>\n"), "I see\n</think>\n\nHello");
  EXPECT_EQ(content("gpt-oss", "<|channel|>analysis<|message|>I see<|end|><|start|>assistant<|channel|>final<|message|>Hello"),
            "<|channel|>analysis<|message|>I see<|end|>Hello");
}

TEST(OutputParser, TellsWhetherItIsWithinReasoning) {
  const auto parser = OutputParser::create(*find_output_format("think"), GenerationRequest(), "", "seed");
  parser->push("<think>one");
  EXPECT_TRUE(parser->in_reasoning());
  parser->push("</think>two");
  EXPECT_FALSE(parser->in_reasoning());
  const auto begun = OutputParser::create(*find_output_format("think"), GenerationRequest(), "…assistant\n<think>\n", "seed");
  EXPECT_TRUE(begun->in_reasoning());
}

// "continue_final_message": the message, not the prompt's end, tells.
TEST(OutputParser, AnAnswerThatGoesOnInAMessageKnowsWhereItIs) {
  GenerationRequest request;
  request.continue_final_message = true;
  request.messages.push_back(json::Object{{"role", "assistant"}, {"content", "<think>I was"}});
  EXPECT_EQ(testing::parse(*find_output_format("think"), request, "… <think>I was", {" there</think>Yes"}).reasoning, "there");
  request.messages.back() = json::Object{{"role", "assistant"}, {"content", "<think>a</think>Well"}};
  EXPECT_EQ(testing::parse(*find_output_format("think"), request, "…", {", yes"}).content, ", yes");
}

// The longest texts: bounded work and nothing held for ever.
TEST(OutputParser, HostileTextsAreContent) {
  const std::string deep = "<tool_call>{\"name\": \"ping\", \"arguments\": {\"a\": " + std::string(100, '[');
  const Answer nested = parse_whole("hermes", deep);
  ASSERT_EQ(nested.calls.size(), 1u);
  EXPECT_EQ(nested.content, std::string(100 - 63, '['));
  const std::string early = "<tool_call>{\"arguments\": {\"a\": \"" + std::string(100000, 'x');
  EXPECT_EQ(parse_whole("hermes", early).content, early);
  std::string triggers;
  for (int i = 0; i < 20000; ++i) triggers += "<tool_call>{\"arguments\": {\"";
  EXPECT_EQ(parse_whole("hermes", triggers).content.size(), triggers.size());
  for (const std::string_view name : output_format_names()) {
    for (const std::string_view open : {"<", "[", "{", "\n", "<tool_call>", "[TOOL_CALLS]", "<|channel|>"}) {
      std::string text;
      for (int i = 0; i < 3000; ++i) text += open;
      const Answer answer = parse_whole(name, text);
      EXPECT_TRUE(answer.calls.empty());
      if (open == "<" || open == "{") {
        EXPECT_EQ((answer.content + answer.reasoning).size(), text.size()) << name;
      }
    }
  }
}

TEST(OutputFormats, NoMarkBeginsWithAnother) {
  for (const OutputFormat& format : output_formats()) {
    std::vector<std::string_view> marks = {format.reasoning.open, format.reasoning.close};
    for (const CallSyntax& call : format.calls) {
      for (const std::string_view mark : {call.section_open, call.open, call.tags.function_open}) marks.push_back(mark);
    }
    for (std::string_view& mark : marks) mark = trimmed(mark);
    for (std::string_view a : marks) {
      for (std::string_view b : marks) {
        if (a.size() > 2 && b.size() > 2 && a != b) {
          EXPECT_FALSE(a.starts_with(b)) << format.name << ": " << a;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::api
