// SPDX-License-Identifier: Apache-2.0
// What OpenAI's two kinds of text answers share: how endings, usage, times and logprobs are written, and what an event begins with.
#pragma once

#include <optional>
#include <string>

#include "api/json_text.h"
#include "api/output.h"
#include "api/response_writer.h"

namespace weir::api {

// "stop", "length", "tool_calls"; beside OpenAI's "abort" (a limit of time, or the server's end) and "error".
std::string_view finish_reason(Ending ending);

void write_usage(JsonText& out, const Usage& usage);      // the object
void write_timings(JsonText& out, const Timings& times);  // the object

// Log probabilities are clamped to what JSON can hold and OpenAI's clients expect of the impossible: -9999.
double shown_logprob(double logprob);

// The token as text for people (UTF-8 repaired), its exact bytes beside it, as chat logprobs have it:
// {"token", "logprob", "bytes", "top_logprobs": […]}.
class TokenWriter {
 public:
  TokenWriter(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, bool as_ids) : tokenizer_(std::move(tokenizer)), as_ids_(as_ids) {}
  void chat_entry(JsonText& out, const sampling::TokenLogprobs& entry, std::int32_t top_n) const;
  // {"<id>": {"logprob", "rank", "decoded_token"}, …}, as vLLM writes prompt_logprobs.
  void prompt_entry(JsonText& out, const sampling::TokenLogprobs& entry, std::int32_t top_n) const;
  // The vocabulary's own text, which names one token only, as legacy logprobs have it; "token_id:7" with as_ids.
  std::string name(TokenId id) const;
  bool ends_generation(TokenId id) const;
  std::string bytes(TokenId id, bool special = true) const;  // special: such tokens are written out

 private:
  void chat_token(JsonText& out, const sampling::TokenLogprob& token) const;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  bool as_ids_;
};

// [null, {…}, …]: of a prompt's tokens from the first on.
void write_prompt_logprobs(JsonText& out, const TokenWriter& tokens, const std::vector<sampling::TokenLogprobs>& entries,
                           std::int32_t top_n);

// {"id": …, "object": …, "created": …, "model": …, "system_fingerprint": …, as the start of every event and document.
JsonText answer_head(const AnswerContext& context, std::string_view id_prefix, std::string_view object);

json::Object usage_schema();
json::Object timings_schema();
json::Object prompt_logprobs_schema();

}  // namespace weir::api
