// SPDX-License-Identifier: Apache-2.0
#include "api/openai_answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "api/fields.h"

namespace weir::api {
namespace {

constexpr double kImpossible = -9999;

std::span<const sampling::TokenLogprob> first_of(const std::vector<sampling::TokenLogprob>& top, std::int32_t n) {
  return {top.data(), std::min(top.size(), static_cast<std::size_t>(std::max(n, 0)))};
}

}  // namespace

std::string_view finish_reason(Ending ending) {
  switch (ending) {
    case Ending::kStop: return "stop";
    case Ending::kLength: return "length";
    case Ending::kToolCalls: return "tool_calls";
    case Ending::kCancelled: return "abort";
    case Ending::kFailed: return "error";
  }
  return "error";
}

double shown_logprob(double logprob) { return logprob > kImpossible ? logprob : kImpossible; }

void write_usage(JsonText& out, const Usage& usage) {
  out.open_object();
  out.member("prompt_tokens", usage.prompt_tokens);
  out.member("completion_tokens", usage.completion_tokens);
  out.member("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  out.key("prompt_tokens_details").open_object().member("cached_tokens", usage.cached_tokens).close_object();
  out.key("completion_tokens_details").open_object().member("reasoning_tokens", usage.reasoning_tokens).close_object();
  out.close_object();
}

void write_timings(JsonText& out, const Timings& times) {
  const auto rate = [](double count, double ms) { return ms > 0 ? count / ms * 1000 : 0; };
  out.open_object();
  out.member("queue_ms", times.queue_ms).member("prefill_ms", times.prefill_ms).member("decode_ms", times.decode_ms);
  out.member("ttft_ms", times.ttft_ms).member("total_ms", times.total_ms);
  out.member("prompt_tokens", times.prompt_tokens).member("cached_tokens", times.cached_tokens);
  out.member("generated_tokens", times.generated_tokens);
  out.member("drafted_tokens", times.drafted_tokens).member("accepted_tokens", times.accepted_tokens);
  out.member("prefill_tokens_per_s", rate(static_cast<double>(times.prompt_tokens - times.cached_tokens), times.prefill_ms));
  out.member("decode_tokens_per_s", rate(static_cast<double>(std::max<std::int64_t>(times.generated_tokens - 1, 0)), times.decode_ms));
  if (times.energy_j) out.member("energy_estimate_j", *times.energy_j).member("energy_source", times.energy_source);
  out.close_object();
}

std::string TokenWriter::bytes(TokenId id, bool special) const {
  if (!tokenizer_ || id < 0 || id >= tokenizer_->vocab_size()) return {};
  return tokenizer_->token_bytes(id, special);
}

bool TokenWriter::ends_generation(TokenId id) const {
  return tokenizer_ && std::ranges::find(tokenizer_->end_of_generation, id) != tokenizer_->end_of_generation.end();
}

std::string TokenWriter::name(TokenId id) const {
  if (as_ids_ || !tokenizer_ || id < 0 || id >= tokenizer_->vocab_size()) return fmt::format("token_id:{}", id);
  const std::string_view text = tokenizer_->token_text(id);
  // Files may have one text twice, or none: then the number says which it is.
  return tokenizer_->find(text) == id ? std::string(text) : fmt::format("token_id:{}", id);
}

void TokenWriter::chat_token(JsonText& out, const sampling::TokenLogprob& token) const {
  const std::string exact = bytes(token.id);
  out.member("token", as_ids_ ? fmt::format("token_id:{}", token.id) : exact);
  out.member("logprob", shown_logprob(token.logprob));
  out.key("bytes").open_array();
  for (const char c : exact) out.integer(static_cast<unsigned char>(c));
  out.close_array();
}

void TokenWriter::chat_entry(JsonText& out, const sampling::TokenLogprobs& entry, std::int32_t top_n) const {
  out.open_object();
  chat_token(out, entry.token);
  out.key("top_logprobs").open_array();
  for (const sampling::TokenLogprob& top : first_of(entry.top, top_n)) {
    out.open_object();
    chat_token(out, top);
    out.close_object();
  }
  out.close_array().close_object();
}

void TokenWriter::prompt_entry(JsonText& out, const sampling::TokenLogprobs& entry, std::int32_t top_n) const {
  const auto write = [&](const sampling::TokenLogprob& token, std::int64_t rank) {
    out.key(fmt::format("{}", token.id)).open_object();
    out.member("logprob", shown_logprob(token.logprob)).member("rank", rank).member("decoded_token", bytes(token.id)).close_object();
  };
  out.open_object();
  write(entry.token, entry.rank);
  std::int64_t rank = 0;
  for (const sampling::TokenLogprob& top : first_of(entry.top, top_n)) {
    ++rank;
    if (top.id != entry.token.id) write(top, rank);
  }
  out.close_object();
}

void write_prompt_logprobs(JsonText& out, const TokenWriter& tokens, const std::vector<sampling::TokenLogprobs>& entries,
                           std::int32_t top_n) {
  out.open_array().null();
  for (const auto& entry : entries) tokens.prompt_entry(out, entry, top_n);
  out.close_array();
}

JsonText answer_head(const AnswerContext& context, std::string_view id_prefix, std::string_view object) {
  JsonText out;
  out.open_object();
  out.member("id", std::string(id_prefix) + context.id).member("object", object);
  out.member("created", context.created).member("model", context.model);
  if (!context.system_fingerprint.empty()) out.member("system_fingerprint", context.system_fingerprint);
  return out;
}

json::Object usage_schema() {
  return schema(R"({"type": "object", "required": ["prompt_tokens", "completion_tokens", "total_tokens"], "properties": {
    "prompt_tokens": {"type": "integer", "minimum": 0}, "completion_tokens": {"type": "integer", "minimum": 0},
    "total_tokens": {"type": "integer", "minimum": 0},
    "prompt_tokens_details": {"type": "object", "properties": {"cached_tokens": {"type": "integer", "minimum": 0}}},
    "completion_tokens_details": {"type": "object", "properties": {"reasoning_tokens": {"type": "integer", "minimum": 0}}}}})")
      .as_object();
}

json::Object timings_schema() {
  return schema(R"({"type": "object", "description": "Times in milliseconds; energy is an estimate.", "properties": {
    "queue_ms": {"type": "number"}, "prefill_ms": {"type": "number"}, "decode_ms": {"type": "number"},
    "ttft_ms": {"type": "number"}, "total_ms": {"type": "number"}, "prompt_tokens": {"type": "integer"},
    "cached_tokens": {"type": "integer"}, "generated_tokens": {"type": "integer"}, "drafted_tokens": {"type": "integer"},
    "accepted_tokens": {"type": "integer"}, "prefill_tokens_per_s": {"type": "number"}, "decode_tokens_per_s": {"type": "number"},
    "energy_estimate_j": {"type": "number"}, "energy_source": {"type": "string"}}})")
      .as_object();
}

json::Object prompt_logprobs_schema() {
  return schema(R"({"type": ["array", "null"], "items": {"type": ["object", "null"], "additionalProperties": {"type": "object",
    "required": ["logprob"], "properties": {"logprob": {"type": "number"}, "rank": {"type": "integer"},
    "decoded_token": {"type": "string"}}}}})")
      .as_object();
}

}  // namespace weir::api
