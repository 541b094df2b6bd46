// SPDX-License-Identifier: Apache-2.0
// The table: what the templates and model cards of each family say. A new family that writes calls in one of the four shapes is a row.
#include <array>

#include "api/output_format.h"
#include "api/output_format_table.h"

namespace weir::api {
namespace {

using Texts = std::string_view;

constexpr ReasoningMarks kThink{.open = "<think>\n", .close = "\n</think>\n\n"};
constexpr ReasoningMarks kThinkTight{.open = "<think>", .close = "</think>"};

constexpr std::array kHermes{CallSyntax{.open = "<tool_call>\n", .close = "\n</tool_call>", .separator = "\n"}};

constexpr ArgumentTags kFunctionTags{.function_open = "<function=",
                                     .name_close = ">\n",
                                     .parameter_open = "<parameter=",
                                     .key_close = ">\n",
                                     .parameter_close = "\n</parameter>\n",
                                     .function_close = "</function>"};
constexpr std::array kQwen3Coder{
    CallSyntax{.body = CallBody::kTagged, .open = "<tool_call>\n", .close = "\n</tool_call>", .separator = "\n", .tags = kFunctionTags},
    kHermes[0]};

constexpr ArgumentTags kSeedTags{.function_open = "<function=",
                                 .name_close = ">\n",
                                 .parameter_open = "<parameter=",
                                 .key_close = ">",
                                 .parameter_close = "</parameter>\n",
                                 .function_close = "</function>"};
constexpr std::array kSeed{CallSyntax{
    .body = CallBody::kTagged, .open = "<seed:tool_call>\n", .close = "\n</seed:tool_call>", .separator = "\n", .tags = kSeedTags}};

constexpr ArgumentTags kArgumentPairs{.name_close = {},
                                      .parameter_open = "\n<arg_key>",
                                      .key_close = "</arg_key>\n",
                                      .value_open = "<arg_value>",
                                      .parameter_close = "</arg_value>"};
constexpr std::array kGlm{
    CallSyntax{.body = CallBody::kTagged, .open = "<tool_call>", .close = "\n</tool_call>", .separator = "\n", .tags = kArgumentPairs},
    kHermes[0]};

constexpr ArgumentTags kHunyuanPairs{.name_close = "<tool_sep:opensource>\n",
                                     .parameter_open = "<arg_key:opensource>",
                                     .key_close = "</arg_key:opensource>\n",
                                     .value_open = "<arg_value:opensource>",
                                     .parameter_close = "</arg_value:opensource>\n"};
constexpr std::array kHunyuan{CallSyntax{.body = CallBody::kTagged,
                                         .section_open = "<tool_calls:opensource>\n",
                                         .open = "<tool_call:opensource>",
                                         .close = "</tool_call:opensource>\n",
                                         .section_close = "</tool_calls:opensource>",
                                         .tags = kHunyuanPairs}};

// <invoke name="f"> with a family's prefix.
constexpr ArgumentTags kMiniMaxTags{.function_open = "<invoke name=\"",
                                    .name_close = "\">\n",
                                    .parameter_open = "<parameter name=\"",
                                    .key_close = "\">",
                                    .parameter_close = "</parameter>\n",
                                    .function_close = "</invoke>\n"};
constexpr std::array kMiniMax{CallSyntax{
    .body = CallBody::kTagged, .section_open = "<minimax:tool_call>\n", .section_close = "</minimax:tool_call>", .tags = kMiniMaxTags}};
constexpr ArgumentTags kDsmlTags{.function_open = "<｜DSML｜invoke name=\"",
                                 .name_close = "\">\n",
                                 .parameter_open = "<｜DSML｜parameter name=\"",
                                 .key_close = "\" string=\"true\">",
                                 .parameter_close = "</｜DSML｜parameter>\n",
                                 .json_key_close = "\" string=\"false\">",
                                 .function_close = "</｜DSML｜invoke>\n"};
constexpr std::array kDsml{
    CallSyntax{.body = CallBody::kTagged,
               .section_open = "<｜DSML｜function_calls>\n",
               .section_close = "</｜DSML｜function_calls>",
               .tags = kDsmlTags},
    CallSyntax{
        .body = CallBody::kTagged, .section_open = "<｜DSML｜tool_calls>\n", .section_close = "</｜DSML｜tool_calls>", .tags = kDsmlTags}};
constexpr std::array kDsml4{kDsml[1], kDsml[0]};
constexpr ArgumentTags kMiniCpmTags{.function_open = "<function name=\"",
                                    .name_close = "\">",
                                    .parameter_open = "<param name=\"",
                                    .key_close = "\">",
                                    .parameter_close = "</param>",
                                    .quote_open = "<![CDATA[",
                                    .quote_close = "]]>",
                                    .function_close = "</function>"};
constexpr std::array kMiniCpm{CallSyntax{.body = CallBody::kTagged, .tags = kMiniCpmTags}};

constexpr std::array kLlama3{CallSyntax{.section_open = "<|python_tag|>", .separator = "; ", .bare = true, .arguments_key = "parameters"},
                             CallSyntax{.body = CallBody::kNamedJson, .open = "<function=", .close = "</function>", .name_close = ">"}};
constexpr std::array kPythonic{CallSyntax{.body = CallBody::kPython,
                                          .section_open = "<|python_start|>",
                                          .list_open = "[",
                                          .separator = ", ",
                                          .list_close = "]",
                                          .section_close = "<|python_end|>",
                                          .bare = true}};
constexpr std::array kLfm2{CallSyntax{.body = CallBody::kPython,
                                      .section_open = "<|tool_call_start|>",
                                      .list_open = "[",
                                      .separator = ", ",
                                      .list_close = "]",
                                      .section_close = "<|tool_call_end|>"}};

constexpr CallSyntax kMistralNamed{.body = CallBody::kNamedJson, .open = "[TOOL_CALLS]", .name_close = "[ARGS]", .id_mark = "[CALL_ID]"};
constexpr CallSyntax kMistralList{.section_open = "[TOOL_CALLS]", .list_open = "[", .separator = ", ", .list_close = "]"};
constexpr std::array kMistral{kMistralNamed, kMistralList};
constexpr std::array kMistralV3{kMistralList, kMistralNamed};

constexpr std::array kDeepseekR1{CallSyntax{.body = CallBody::kNamedJson,
                                            .section_open = "<｜tool▁calls▁begin｜>",
                                            .open = "<｜tool▁call▁begin｜>",
                                            .close = "\n```<｜tool▁call▁end｜>",
                                            .separator = "\n",
                                            .section_close = "<｜tool▁calls▁end｜>",
                                            .name_prefix = "function<｜tool▁sep｜>",
                                            .name_close = "\n```json\n"}};
constexpr std::array kDeepseekV31{CallSyntax{.body = CallBody::kNamedJson,
                                             .section_open = "<｜tool▁calls▁begin｜>",
                                             .open = "<｜tool▁call▁begin｜>",
                                             .close = "<｜tool▁call▁end｜>",
                                             .section_close = "<｜tool▁calls▁end｜>",
                                             .name_close = "<｜tool▁sep｜>"}};
constexpr std::array kKimi{CallSyntax{.body = CallBody::kNamedJson,
                                      .section_open = "<|tool_calls_section_begin|>",
                                      .open = "<|tool_call_begin|>",
                                      .close = "<|tool_call_end|>",
                                      .section_close = "<|tool_calls_section_end|>",
                                      .name_prefix = "functions.",
                                      .name_close = "<|tool_call_argument_begin|>",
                                      .id_mark = ":",
                                      .id_text = "[0-9]{1,4}"}};

constexpr std::array kGranite{CallSyntax{.section_open = "<|tool_call|>", .list_open = "[", .separator = ", ", .list_close = "]"}};
constexpr std::array kActionList{CallSyntax{.section_open = "Action:\n```json\n",
                                            .list_open = "[",
                                            .separator = ", ",
                                            .list_close = "]",
                                            .section_close = "\n```",
                                            .name_key = "tool_name",
                                            .arguments_key = "parameters"}};
constexpr std::array kActionMarks{CallSyntax{.section_open = "<|START_ACTION|>",
                                             .list_open = "[\n    ",
                                             .separator = ",\n    ",
                                             .list_close = "\n]",
                                             .section_close = "<|END_ACTION|>",
                                             .name_key = "tool_name",
                                             .arguments_key = "parameters"}};
constexpr std::array kResponseMarks{Texts("<|START_RESPONSE|>"), Texts("<|END_RESPONSE|>"), Texts("<|START_TEXT|>"), Texts("<|END_TEXT|>")};
constexpr std::array kToolcallList{
    CallSyntax{.section_open = "<TOOLCALL>", .list_open = "[", .separator = ", ", .list_close = "]", .section_close = "</TOOLCALL>"}};
constexpr std::array kApriel{
    CallSyntax{.section_open = "<tool_calls>", .list_open = "[", .separator = ", ", .list_close = "]", .section_close = "</tool_calls>"}};
constexpr std::array kMiniMaxM1{CallSyntax{.section_open = "<tool_calls>\n", .separator = "\n", .section_close = "\n</tool_calls>"}};
constexpr std::array kFunctionary{
    CallSyntax{.body = CallBody::kNamedJson, .open = "<function=", .close = "</function>", .name_close = ">"}};
constexpr std::array kFirefunction{CallSyntax{.section_open = " functools", .list_open = "[", .separator = ", ", .list_close = "]"}};
constexpr std::array kGigachat{CallSyntax{.open = "<|function_call|>"},
                               CallSyntax{.open = "<|message_sep|>\n\nfunction call<|role_sep|>\n"}};
constexpr std::array kGigachat3{kGigachat[1], kGigachat[0]};
constexpr std::array kApertus{CallSyntax{.body = CallBody::kNamedJson,
                                         .section_open = "<|tools_prefix|>",
                                         .list_open = "[",
                                         .open = "{\"",
                                         .close = "}",
                                         .separator = ", ",
                                         .list_close = "]",
                                         .section_close = "<|tools_suffix|>",
                                         .name_close = "\": "}};
constexpr std::array kBareJson{CallSyntax{.separator = "\n", .bare = true}};

constexpr ChannelMarks kHarmony{.start = "<|start|>",
                                .role = "assistant",
                                .channel = "<|channel|>",
                                .constrain = "<|constrain|>",
                                .message = "<|message|>",
                                .end = "<|end|>",
                                .call = "<|call|>",
                                .last = "<|return|>",
                                .reasoning = "analysis",
                                .answer = "final",
                                .calls = "commentary",
                                .recipient = "functions."};

constexpr std::array kFormats{
    OutputFormat{.name = "none", .calls = kBareJson, .generic = true},
    OutputFormat{.name = "think", .reasoning = kThink, .calls = kBareJson, .generic = true},
    OutputFormat{.name = "json", .reasoning = kThink, .calls = kBareJson},
    OutputFormat{.name = "hermes", .reasoning = kThink, .calls = kHermes},
    OutputFormat{.name = "qwen3-coder", .reasoning = kThink, .calls = kQwen3Coder},
    OutputFormat{.name = "glm", .reasoning = kThinkTight, .calls = kGlm},
    OutputFormat{.name = "seed-oss", .reasoning = {.open = "<seed:think>", .close = "</seed:think>"}, .calls = kSeed},
    OutputFormat{.name = "hunyuan", .reasoning = {.open = "<think:opensource>", .close = "</think:opensource>"}, .calls = kHunyuan},
    OutputFormat{.name = "llama3", .calls = kLlama3},
    OutputFormat{.name = "pythonic", .calls = kPythonic},
    OutputFormat{.name = "lfm2", .reasoning = kThinkTight, .calls = kLfm2, .special = true},
    OutputFormat{.name = "mistral",
                 .reasoning = {.open = "[THINK]", .close = "[/THINK]"},
                 .calls = kMistral,
                 .special = true,
                 .ids = IdStyle::kNine},
    OutputFormat{.name = "mistral-v3", .calls = kMistralV3, .special = true, .ids = IdStyle::kNine},
    OutputFormat{.name = "gpt-oss", .channels = kHarmony, .special = true},
    OutputFormat{.name = "deepseek-r1",
                 .reasoning = {.open = "<think>\n", .close = "\n</think>\n\n", .always = true},
                 .calls = kDeepseekR1,
                 .special = true},
    OutputFormat{.name = "deepseek-v3", .calls = kDeepseekR1, .special = true},
    OutputFormat{.name = "deepseek-v3.1", .reasoning = kThinkTight, .calls = kDeepseekV31, .special = true},
    OutputFormat{.name = "deepseek-v3.2", .reasoning = kThinkTight, .calls = kDsml},
    OutputFormat{.name = "deepseek-v4", .reasoning = kThinkTight, .calls = kDsml4},
    OutputFormat{.name = "kimi-k2", .reasoning = kThinkTight, .calls = kKimi, .special = true},
    OutputFormat{.name = "granite", .reasoning = kThinkTight, .calls = kGranite, .special = true},
    OutputFormat{.name = "command-r", .calls = kActionList},
    OutputFormat{.name = "command-r7b",
                 .reasoning = {.open = "<|START_THINKING|>", .close = "<|END_THINKING|>"},
                 .calls = kActionMarks,
                 .silent = kResponseMarks,
                 .special = true},
    OutputFormat{.name = "minimax-m1", .reasoning = kThink, .calls = kMiniMaxM1},
    OutputFormat{.name = "minimax-m2", .reasoning = kThink, .calls = kMiniMax},
    OutputFormat{.name = "nemotron", .reasoning = kThink, .calls = kToolcallList},
    OutputFormat{.name = "apriel", .reasoning = {.open = "<thinking>", .close = "</thinking>"}, .calls = kApriel},
    OutputFormat{.name = "apriel-1.6",
                 .reasoning = {.open = "Here are my reasoning steps:\n", .close = "\n[BEGIN FINAL RESPONSE]\n"},
                 .calls = kApriel},
    OutputFormat{.name = "functionary", .calls = kFunctionary},
    OutputFormat{.name = "firefunction", .calls = kFirefunction},
    OutputFormat{.name = "gigachat", .calls = kGigachat, .special = true},
    OutputFormat{.name = "gigachat-3", .calls = kGigachat3, .special = true},
    OutputFormat{
        .name = "apertus", .reasoning = {.open = "<|inner_prefix|>", .close = "<|inner_suffix|>"}, .calls = kApertus, .special = true},
    OutputFormat{.name = "minicpm", .reasoning = kThink, .calls = kMiniCpm},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kFormats.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kFormats[i].name;
  return names;
}();

}  // namespace

std::span<const OutputFormat> output_formats() { return kFormats; }

std::span<const std::string_view> output_format_names() { return kNames; }

const OutputFormat* find_output_format(std::string_view name) {
  for (const OutputFormat& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

std::string_view name_of(const OutputFormat& format) { return format.name; }

bool has_tools(const OutputFormat& format) { return !format.generic; }

bool needs_special(const OutputFormat& format) { return format.special; }

}  // namespace weir::api
