// SPDX-License-Identifier: Apache-2.0
// Which format a chat template speaks: the marks it writes, from the most particular to the most common.
#include <array>

#include "api/output_format.h"
#include "api/output_format_table.h"

namespace weir::api {
namespace {

// All of `has` are in the template, none of `lacks`.
struct Clue {
  std::string_view format;
  std::array<std::string_view, 2> has = {};
  std::string_view lacks = {};
};

constexpr std::array kClues{
    Clue{"gpt-oss", {"<|channel|>", "<|message|>"}},
    Clue{"deepseek-v3.2", {"｜DSML｜", "function_calls>"}},
    Clue{"deepseek-v4", {"｜DSML｜", "tool_calls>"}},
    Clue{"deepseek-v3.2", {"｜DSML｜", "function_calls"}},
    Clue{"deepseek-v4", {"｜DSML｜"}},
    Clue{"deepseek-r1", {"<｜tool▁call▁begin｜>", "```json"}},
    Clue{"deepseek-v3.1", {"<｜tool▁call▁begin｜>"}},
    Clue{"kimi-k2", {"<|tool_calls_section_begin|>"}},
    Clue{"command-r7b", {"<|START_ACTION|>"}},
    Clue{"command-r", {"Action:", "tool_name"}},
    Clue{"none", {"<atem:invoke"}},
    Clue{"none", {"ns_token ~ '<tool_call>'"}},
    Clue{"minimax-m2", {"<minimax:tool_call>", "<invoke name="}},
    Clue{"seed-oss", {"<seed:tool_call>"}},
    Clue{"hunyuan", {"'<tool_call{}>'", "'<arg_key{}>'"}},
    Clue{"gigachat", {"<|function_call|>"}},
    Clue{"gigachat-3", {"function call", "<|role_sep|>"}},
    Clue{"mistral-v3", {"[TOOL_CALLS]", "\"call_id\""}, "[ARGS]"},
    Clue{"mistral", {"[TOOL_CALLS]", "[ARGS]"}},
    Clue{"mistral-v3", {"[TOOL_CALLS]"}},
    Clue{"apertus", {"<|tools_prefix|>"}},
    Clue{"lfm2", {"<|tool_list_start|>"}},
    Clue{"lfm2", {"<|tool_call_start|>"}},
    Clue{"lfm2", {"List of tools: [", "keep_past_thinking"}},
    Clue{"granite", {"<|tool_call|>", "<|start_of_role|>"}},
    Clue{"glm", {"<arg_key>", "<tool_call>"}},
    Clue{"qwen3-coder", {"<function=", "<parameter="}},
    Clue{"minicpm", {"<function name=", "<param name="}},
    Clue{"functionary", {"<function=", "</function>"}},
    Clue{"firefunction", {" functools["}},
    Clue{"nemotron", {"<TOOLCALL>"}},
    Clue{"apriel-1.6", {"<tool_calls>[", "[BEGIN FINAL RESPONSE]"}},
    Clue{"apriel", {"<tool_calls>["}},
    Clue{"minimax-m1", {"<tool_calls>"}},
    Clue{"hermes", {"<tool_call>", "tools"}},
    Clue{"pythonic", {"<|python_start|>"}},
    Clue{"pythonic", {"[func_name1(", "<|header_start|>"}},
    Clue{"pythonic", {"[func_name1("}},
    Clue{"llama3", {"<|start_header_id|>", "\"parameters\":"}},
    Clue{"think", {"</think>"}},
    Clue{"json", {"tool_calls", "\"arguments\""}},
};

// A family's template may write no tools: its special tokens tell that the model knows them.
struct TokenClue {
  std::string_view format;
  std::array<std::string_view, 2> has = {};
};
constexpr std::array kTokenClues{
    TokenClue{"gpt-oss", {"<|channel|>", "<|constrain|>"}},
    TokenClue{"mistral", {"[TOOL_CALLS]", "[ARGS]"}},
    TokenClue{"kimi-k2", {"<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"}},
    TokenClue{"lfm2", {"<|tool_call_start|>", "<|tool_call_end|>"}},
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

const OutputFormat* guess_output_format(std::string_view chat_template, const std::function<bool(std::string_view)>& has_token) {
  for (const Clue& clue : kClues) {
    const bool fits = contains(chat_template, clue.has[0]) && contains(chat_template, clue.has[1]);
    if (fits && (clue.lacks.empty() || !contains(chat_template, clue.lacks))) return find_output_format(clue.format);
  }
  for (const TokenClue& clue : kTokenClues) {
    if (has_token && has_token(clue.has[0]) && has_token(clue.has[1])) return find_output_format(clue.format);
  }
  return find_output_format("none");
}

}  // namespace weir::api
