// SPDX-License-Identifier: Apache-2.0
// The logprobs of text completions: four parallel lists (tokens, token_logprobs, top_logprobs, text_offset), written as they grow.
// The token itself is always among its top_logprobs, so that a reader can see whether it was the likeliest.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "api/openai_answer.h"

namespace weir::api {

class LegacyLogprobs {
 public:
  // The next token begins behind this text.
  void start_at(std::string_view text);
  void add(const TokenWriter& tokens, const sampling::TokenLogprobs& entry, std::int32_t top_n, bool show_special);
  // A prompt and what is known of its tokens from the second on; the first has nothing before it: null. `text` as the client sees it.
  void add_prompt(const TokenWriter& tokens, std::span<const TokenId> ids, std::string_view text,
                  std::span<const sampling::TokenLogprobs> entries, std::int32_t top_n);
  // The object; `before` (its lists come first) and this are empty afterwards, places in the text go on.
  void write(JsonText& out, LegacyLogprobs* before = nullptr);

 private:
  void add_values(const TokenWriter& tokens, const sampling::TokenLogprobs& entry, std::int32_t top_n);

  JsonText names_, values_, tops_, offsets_;
  std::int64_t offset_ = 0;  // characters
};

}  // namespace weir::api
