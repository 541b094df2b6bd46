// SPDX-License-Identifier: Apache-2.0
// One row for each way in which models write reasoning and calls. A row says everything; parser and grammar are the same for all.
//
// The texts stand as the model's template writes them, white space included: grammars make exactly that. The parser takes any white
// space around them.
#pragma once

#include <span>
#include <string_view>

namespace weir::api {

struct ReasoningMarks {
  std::string_view open = {}, close = {};  // empty: the format has no reasoning
  bool always = false;                     // an answer begins within it, whatever the prompt's end says
};

enum class CallBody {
  kJson,       // {"name": NAME, "arguments": {…}} by the keys below
  kNamedJson,  // NAME, name_close, {…}
  kTagged,     // NAME and a pair of tags around each argument
  kPython      // NAME(key=value, …)
};

// Arguments between tags: function_open NAME name_close (parameter_open KEY key_close value_open VALUE parameter_close)* function_close
struct ArgumentTags {
  std::string_view function_open = {};  // empty: the name follows the call's mark …
  std::string_view name_close = {};     // … and without this it is what letters, digits, '_', '-', '.' there are
  std::string_view parameter_open = {}, key_close = {}, value_open = {}, parameter_close = {};
  std::string_view json_key_close = {};                // instead of key_close when the value is JSON and no text
  std::string_view quote_open = {}, quote_close = {};  // may stand around a value
  std::string_view function_close = {};                // empty: the call's closing mark ends it
};

// section_open list_open (open BODY close) separator (open BODY close) … list_close section_close; any of them may be empty.
struct CallSyntax {
  CallBody body = CallBody::kJson;
  std::string_view section_open = {}, list_open = {}, open = {}, close = {}, separator = {}, list_close = {}, section_close = {};
  bool bare = false;  // an answer may begin with the list or the body, without the section's marks
  std::string_view name_key = "name", arguments_key = "arguments";  // kJson
  std::string_view name_prefix = {};                                // kNamedJson: before the name; models may leave it out
  std::string_view name_close = {};                                 // kNamedJson
  std::string_view id_mark = {};                                    // kNamedJson: from here on to name_close stands an id
  std::string_view id_text = {};                                    // kNamedJson: what a grammar writes there
  ArgumentTags tags = {};
};

// Messages with a header of their own, as in OpenAI's Harmony: start ROLE channel NAME to=RECIPIENT constrain json message TEXT end
struct ChannelMarks {
  std::string_view start = {}, role = {}, channel = {}, constrain = {}, message = {}, end = {};
  std::string_view call = {}, last = {};  // the ends of a call and of the answer: the tokenizer's ends, seldom part of the text
  std::string_view reasoning = {}, answer = {}, calls = {};  // the channels
  std::string_view recipient = {};                           // before a function's name
};

enum class IdStyle { kCall, kNine };  // "call_" and 24 characters; nine characters, as Mistral's templates insist

struct OutputFormat {
  std::string_view name;
  ReasoningMarks reasoning = {};
  std::span<const CallSyntax> calls = {};         // several: what follows the mark tells which; grammars use the first
  ChannelMarks channels = {};                     // instead of both
  std::span<const std::string_view> silent = {};  // marks around the content, which are left out
  bool generic = false;                           // the calls are what any model can be asked for, not this family's own
  bool special = false;                           // the marks are special tokens
  IdStyle ids = IdStyle::kCall;
};

std::span<const OutputFormat> output_formats();

}  // namespace weir::api
