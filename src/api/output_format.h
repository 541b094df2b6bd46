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

namespace weir::api {

struct OutputFormat;  // a row of the table

// By name ("hermes", "llama3", "mistral", "gpt-oss", "json", "none"); nullptr when there is none such.
const OutputFormat* find_output_format(std::string_view name);
std::span<const std::string_view> output_format_names();
// What fits a model: from its chat template's text and special tokens. Never null ("none" without tools and reasoning).
const OutputFormat* guess_output_format(std::string_view chat_template, const std::function<bool(std::string_view)>& has_token);

std::string_view name_of(const OutputFormat& format);
bool has_tools(const OutputFormat& format);
// Whether the format is written with special tokens, so that the text must show them (GenerationRequest::show_special).
bool needs_special(const OutputFormat& format);

// One answer's parser. Fed with the model's text in pieces of any size; the same text gives the same result at every split.
class OutputParser {
 public:
  // `rendered_prompt`: its end tells whether the answer begins within reasoning.
  static std::unique_ptr<OutputParser> create(const OutputFormat& format, const GenerationRequest& request,
                                              std::string_view rendered_prompt, std::string id_seed);
  virtual ~OutputParser() = default;
  virtual ParsedDelta push(std::string_view text) = 0;
  virtual ParsedDelta finish() = 0;  // what was held back
  virtual bool called_tools() const = 0;
  virtual bool in_reasoning() const = 0;  // the text pushed last ended within reasoning: for counting its tokens
};

// The grammar that forces what tool_choice asks for (kRequired, kNamed), or, with kAuto and strict tools, constrains calls once one has
// begun. Nothing: the request needs none. kUnsupported names what cannot be enforced.
ApiResult<std::optional<grammar::GrammarSpec>> tool_grammar(const OutputFormat& format, const GenerationRequest& request);

}  // namespace weir::api
