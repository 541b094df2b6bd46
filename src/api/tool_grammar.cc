// SPDX-License-Identifier: Apache-2.0
// The grammar of a whole answer: perhaps reasoning, then calls in the format's own words, free text, or the response format.
#include <fmt/core.h>

#include <algorithm>

#include "api/output_format.h"
#include "api/output_parser_calls.h"
#include "api/output_parser_start.h"
#include "api/tool_arguments.h"

namespace weir::api {
namespace {

using grammar::GrammarKind;
using grammar::GrammarSpec;

constexpr std::string_view kSpaces = "/[ \\n]{1,4}/";

class AnswerGrammar {
 public:
  AnswerGrammar(const OutputFormat& format, const GenerationRequest& request, std::string_view prompt,
                const tokenizer::Tokenizer& tokenizer)
      : format_(format), request_(request), prompt_(prompt), lark_(tokenizer) {
    const auto kind = request.tool_choice.kind;
    if (kind == ToolChoice::Kind::kNone) return;
    for (const Tool& tool : request.tools) {
      if (kind != ToolChoice::Kind::kNamed || tool.name == request.tool_choice.name) tools_.push_back(&tool);
    }
  }

  ApiResult<std::optional<GrammarSpec>> make();

 private:
  bool forced() const {
    return request_.tool_choice.kind == ToolChoice::Kind::kRequired || request_.tool_choice.kind == ToolChoice::Kind::kNamed;
  }
  bool parallel() const { return request_.tool_choice.parallel && request_.tool_choice.kind != ToolChoice::Kind::kNamed; }
  // Without strict tools and with one call at most, the parser alone sees to it where only a schema could say what a call is.
  bool holds_calls() const {
    if (tools_.empty()) return false;
    if (forced() || std::ranges::any_of(tools_, [](const Tool* tool) { return tool->strict; })) return true;
    const bool json = format_.calls.empty() || format_.calls[0].body == CallBody::kJson || format_.calls[0].body == CallBody::kNamedJson;
    return !parallel() && json;
  }

  Result<std::string> answer();                        // what comes after the reasoning
  Result<std::string> response_format();               // as a part of a grammar
  Result<std::string> calls(bool without_first_mark);  // all that the answer may have
  Result<std::string> call(const CallSyntax& syntax, const Tool& tool);
  Result<std::string> arguments(const Tool& tool);
  std::string first_mark() const;
  Result<std::string> free_text_or_calls();
  ApiResult<std::string> with_reasoning(const std::string& answer);
  ApiResult<std::string> with_channels(const std::string& answer);
  Result<std::string> channel_call(const Tool& tool);
  Result<std::string> channel_answer();

  const OutputFormat& format_;
  const GenerationRequest& request_;
  std::string_view prompt_;
  LarkWriter lark_;
  std::vector<const Tool*> tools_;
};

bool has_channels(const OutputFormat& format) { return !format.channels.message.empty(); }

ApiError unsupported(std::string param, std::string message) {
  return bad_request(std::move(param), std::move(message), "unsupported_value");
}

ApiResult<std::optional<GrammarSpec>> AnswerGrammar::make() {
  if (forced() && tools_.empty()) return std::unexpected(bad_request("tool_choice", "names no function of \"tools\""));
  const auto& given = request_.options.grammar;
  const bool calls = holds_calls();
  const AnswerStart start = answer_start(format_, request_, prompt_);
  const bool reasons = has_channels(format_) || start != AnswerStart::kNoReasoning;
  const bool either = given && !tools_.empty();
  if (!calls && !either && !(given && reasons)) return given;
  // An expression is read in its own way only as a whole grammar.
  if (given && given->kind == GrammarKind::kRegex && !forced()) {
    if (!either && !has_channels(format_) && start == AnswerStart::kMayReason) return given;
    return std::unexpected(
        unsupported("guided_regex", "an expression together with reasoning or tools is not supported: turn thinking off"));
  }
  const auto body = answer();
  if (!body) return std::unexpected(from_error(body.error(), forced() || calls ? "tools" : std::string(request_.format_field)));
  auto whole = has_channels(format_) ? with_channels(*body) : with_reasoning(*body);
  if (!whole) return std::unexpected(std::move(whole).error());
  return GrammarSpec{.kind = GrammarKind::kLark,
                     .text = lark_.grammar(*whole),
                     .whitespace = given ? given->whitespace : grammar::JsonWhitespace::kFlexible};
}

Result<std::string> AnswerGrammar::answer() {
  if (forced()) return calls(false);
  const auto& given = request_.options.grammar;
  if (!given) return free_text_or_calls();
  std::string format;
  if (has_channels(format_)) {
    WEIR_ASSIGN(format, channel_answer());
  } else {
    WEIR_ASSIGN(format, response_format());
  }
  if (tools_.empty()) return format;
  WEIR_ASSIGN(const std::string instead, calls(false));
  return lark_.rule(instead + "| " + format);
}

Result<std::string> AnswerGrammar::response_format() {
  const GrammarSpec& given = *request_.options.grammar;
  switch (given.kind) {
    case GrammarKind::kJsonObject: return LarkWriter::schema(json::Object{{"type", "object"}});
    case GrammarKind::kJsonSchema: {
      WEIR_ASSIGN(const json::Value schema, json::parse(given.text, "the schema"));
      return LarkWriter::schema(schema);
    }
    case GrammarKind::kChoice: {
      std::string choices;
      for (const std::string& choice : given.choices)
        choices += (choices.empty() ? "" : "| ") + (choice.empty() ? "\"\" " : lark_.text(choice));
      if (choices.empty()) return fail(ErrorCode::kInvalidArgument, "the choices must be texts, at least one");
      return lark_.rule(choices);
    }
    case GrammarKind::kLark: return fmt::format("%lark {{\n{}\n}} ", given.text);
    case GrammarKind::kRegex: break;
  }
  return fail(ErrorCode::kUnsupported, "an expression together with reasoning or tools is not supported");
}

Result<std::string> AnswerGrammar::arguments(const Tool& tool) {
  // With a free choice only strict tools are held to their schemas; where values have no quotes, schemas tell what a call is.
  if (!forced() && !tool.strict) return json_arguments({});
  return json_arguments(tool.parameters);
}

Result<std::string> AnswerGrammar::call(const CallSyntax& s, const Tool& tool) {
  if (tool.name.empty() || !std::ranges::all_of(tool.name, is_name_character)) {
    return fail(ErrorCode::kUnsupported, "a function's name may have letters, digits, '_', '-' and '.' only: \"{}\"", tool.name);
  }
  switch (s.body) {
    case CallBody::kJson: {
      WEIR_ASSIGN(const std::string json, arguments(tool));
      return lark_.rule(lark_.text(fmt::format("{{\"{}\": \"{}\", \"{}\": ", s.name_key, tool.name, s.arguments_key)) + json + "\"}\"");
    }
    case CallBody::kNamedJson: {
      WEIR_ASSIGN(const std::string json, arguments(tool));
      std::string name = lark_.text(std::string(s.name_prefix) + tool.name);
      if (!s.id_text.empty()) name += lark_.text(s.id_mark) + fmt::format("/{}/ ", s.id_text);
      return lark_.rule(name + lark_.text(s.name_close) + json);
    }
    case CallBody::kTagged: {
      WEIR_ASSIGN(const std::string tags, tagged_arguments(lark_, s.tags, tool.parameters));
      const std::string open = std::string(s.tags.function_open) + tool.name + std::string(s.tags.name_close);
      return lark_.rule(lark_.text(open) + tags + lark_.text(s.tags.function_close));
    }
    case CallBody::kPython: {
      WEIR_ASSIGN(const std::string list, python_arguments(lark_, tool.parameters));
      return lark_.rule(lark_.text(tool.name + "(") + list + "\")\"");
    }
  }
  return std::string();
}

std::string AnswerGrammar::first_mark() const {
  const CallSyntax& s = format_.calls.front();
  return std::string(s.bare ? "" : !s.section_open.empty() ? s.section_open : s.list_open.empty() ? s.open : "");
}

Result<std::string> AnswerGrammar::calls(bool without_first_mark) {
  std::string one;
  const bool channels = has_channels(format_);
  for (const Tool* tool : tools_) {
    WEIR_ASSIGN(const std::string rule, channels ? channel_call(*tool) : call(format_.calls.front(), *tool));
    one += (one.empty() ? "" : "| ") + rule;
  }
  if (channels) return lark_.rule(one);
  const CallSyntax& s = format_.calls.front();
  one = lark_.rule(one);
  const bool open_is_first = !first_mark().empty() && s.section_open.empty();
  std::string out = without_first_mark || s.bare ? "" : lark_.text(s.section_open);
  out += lark_.text(s.list_open);
  out += (without_first_mark && open_is_first ? "" : lark_.text(s.open)) + one + lark_.text(s.close);
  if (parallel()) out += "( " + lark_.text(s.separator) + lark_.text(s.open) + one + lark_.text(s.close) + ")* ";
  out += lark_.text(s.list_close);
  if (!s.bare) out += lark_.text(s.section_close);
  return lark_.rule(out);
}

// Calls may come at the end of a text in which no mark of a call occurs otherwise.
Result<std::string> AnswerGrammar::free_text_or_calls() {
  if (has_channels(format_)) {
    WEIR_ASSIGN(const std::string call, calls(false));
    WEIR_ASSIGN(const std::string text, channel_answer());
    return lark_.rule(call + "| " + text);
  }
  std::vector<std::string_view> marks;
  for (const CallSyntax& s : format_.calls) {
    for (const std::string_view mark : {trimmed(s.section_open), trimmed(s.open), trimmed(s.tags.function_open)}) {
      if (mark.size() > 2) marks.push_back(mark);
    }
  }
  const std::string first = first_mark();
  const bool bare = format_.calls.front().bare;
  WEIR_ASSIGN(const std::string calls, this->calls(!bare));
  std::string text = lark_.text_without(marks);
  if (!bare) return lark_.rule(text + "| \"\" | " + lark_.text_until(first, marks) + calls);
  text = lark_.terminal("/[^{\\[ \\t\\r\\n](?s:.)*/ & " + text);
  return lark_.rule(text + "| \"\" | " + calls);
}

ApiResult<std::string> AnswerGrammar::with_reasoning(const std::string& answer) {
  const AnswerStart start = answer_start(format_, request_, prompt_);
  if (start == AnswerStart::kNoReasoning) return answer;
  const std::string_view close = trimmed(format_.reasoning.close);
  const std::string reasoning = lark_.text_until(close) + lark_.terminal(kSpaces) + "? ";
  if (start == AnswerStart::kInReasoning) return reasoning + answer;
  return "(" + lark_.text(trimmed(format_.reasoning.open)) + reasoning + ")? " + answer;
}

Result<std::string> AnswerGrammar::channel_call(const Tool& tool) {
  if (tool.name.empty() || !std::ranges::all_of(tool.name, is_name_character)) {
    return fail(ErrorCode::kUnsupported, "a function's name may have letters, digits, '_', '-' and '.' only: \"{}\"", tool.name);
  }
  const ChannelMarks& m = format_.channels;
  WEIR_ASSIGN(const std::string json, arguments(tool));
  const std::string header = fmt::format("{}{} to={}{} {}json{}", m.channel, m.calls, m.recipient, tool.name, m.constrain, m.message);
  return lark_.rule(lark_.text(header) + json);
}

Result<std::string> AnswerGrammar::channel_answer() {
  const ChannelMarks& m = format_.channels;
  std::string text = lark_.terminal("/(?s:.)+/") + "? ";
  if (request_.options.grammar) {
    WEIR_ASSIGN(text, response_format());
  }
  return lark_.rule(lark_.text(std::string(m.channel) + std::string(m.answer) + std::string(m.message)) + text);
}

// Analysis first, as often as the model wants; a prompt that has begun a message leaves that one to be ended.
ApiResult<std::string> AnswerGrammar::with_channels(const std::string& answer) {
  const ChannelMarks& m = format_.channels;
  const std::string next = lark_.text(m.end) + lark_.text(std::string(m.start) + std::string(m.role));
  const std::string text = lark_.terminal("/(?s:.)+/") + "? ";
  const std::string analysis =
      lark_.rule(lark_.text(std::string(m.channel) + std::string(m.reasoning) + std::string(m.message)) + text + next);
  const std::string rest = analysis + "* " + answer;
  const std::string_view begun = channel_start(m, prompt_);
  if (begun.empty()) return rest;
  const std::string opened = std::string(m.channel) + std::string(m.reasoning);
  if (begun == opened) return lark_.text(m.message) + text + next + rest;
  if (begun.starts_with(opened + std::string(m.message))) return text + next + rest;
  return std::unexpected(unsupported(std::string(request_.input_name()),
                                     "the prompt has begun a message that calls and response formats cannot be fitted into"));
}

}  // namespace

ApiResult<std::optional<grammar::GrammarSpec>> answer_grammar(const OutputFormat& format, const GenerationRequest& request,
                                                              std::string_view rendered_prompt, const tokenizer::Tokenizer& tokenizer) {
  return AnswerGrammar(format, request, rendered_prompt, tokenizer).make();
}

}  // namespace weir::api
