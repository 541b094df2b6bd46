// SPDX-License-Identifier: Apache-2.0
// What one piece of an OpenAI-style answer says: an event of a stream, or a whole body. Only what is measured is looked at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::loadgen {

struct AnswerPiece {
  bool valid = false;    // JSON of a known shape, or [DONE]
  bool done = false;     // data: [DONE]
  bool content = false;  // text, reasoning or a piece of a tool call: something that a user would see
  bool error = false;
  std::string text;  // content, when asked for; or the error's message
  std::int64_t prompt_tokens = -1, completion_tokens = -1, cached_tokens = -1;
  double queue_s = -1, prefill_s = -1, decode_s = -1;
};

// `want_text`: a later turn has to repeat it.
AnswerPiece parse_event(std::string_view data, bool want_text);
AnswerPiece parse_body(std::string_view body, bool want_text);

}  // namespace weir::loadgen
