// SPDX-License-Identifier: Apache-2.0
// How a family of models writes reasoning and calls of tools into its text: a table of data (output_formats.cc), one parser that works
// piece by piece whatever the split, and grammars that hold a model to a call.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/generation_request.h"
#include "api/output.h"
#include "tokenizer/tokenizer.h"

namespace weir::api {

struct OutputFormat;  // a row of the table

// By name ("hermes", "llama3", "mistral", "gpt-oss", "json", "none"); nullptr when there is none such.
const OutputFormat* find_output_format(std::string_view name);
std::span<const std::string_view> output_format_names();
// What fits a model: from its chat template's text and special tokens. Never null ("none" without tools and reasoning).
const OutputFormat* guess_output_format(std::string_view chat_template, const std::function<bool(std::string_view)>& has_token);

std::string_view name_of(const OutputFormat& format);
// Whether the family has a way of its own to call tools. Where it has none, calls are bare JSON: grammars can force them, and a model
// can be asked for them by tool_prompt().
bool has_tools(const OutputFormat& format);
// For models whose template writes no tools: what a system message says of them, and how to call them.
std::string tool_prompt(const GenerationRequest& request);
// Whether the format is written with special tokens, so that the text must show them (GenerationRequest::show_special).
bool needs_special(const OutputFormat& format);

// One answer's parser. Fed with the model's text in pieces of any size; the same text gives the same result at every split. Pieces of
// whole characters give pieces of whole characters.
//
// What it promises: nothing comes twice and nothing is lost, but for the marks themselves and white space that touches them. A call
// begins once a function of the request is named and its arguments begin; anything before that which turns out ill-formed, or names
// another function, is content as it stands. From then on its arguments come as they are written: a prefix of valid JSON at any time
// (raw control characters within strings come escaped), all of it unless the text ends or goes wrong in the middle; what follows a fault
// is content. With parallel calls off, what looks like a second call is content.
class OutputParser {
 public:
  // `rendered_prompt`: its end tells whether the answer begins within reasoning. `id_seed`: another for each answer.
  static std::unique_ptr<OutputParser> create(const OutputFormat& format, const GenerationRequest& request,
                                              std::string_view rendered_prompt, std::string id_seed);
  virtual ~OutputParser() = default;
  virtual ParsedDelta push(std::string_view text) = 0;
  virtual ParsedDelta finish() = 0;  // what was held back
  virtual bool called_tools() const = 0;
  virtual bool in_reasoning() const = 0;  // the text pushed last ended within reasoning: for counting its tokens
};

// The grammar of the whole answer, when the request needs one: calls that tool_choice asks for (kRequired, kNamed); with kAuto free text
// whose calls, once begun, are held to the schemas of strict tools and to one call when parallel ones are off; the response format
// (request.options.grammar), which begins where reasoning ends, or calls instead of it. Nothing: none is needed. An error names what
// cannot be enforced. `rendered_prompt` as above; the tokenizer tells which marks are special tokens.
ApiResult<std::optional<grammar::GrammarSpec>> answer_grammar(const OutputFormat& format, const GenerationRequest& request,
                                                              std::string_view rendered_prompt, const tokenizer::Tokenizer& tokenizer);

}  // namespace weir::api
