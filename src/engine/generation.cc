// SPDX-License-Identifier: Apache-2.0
#include "engine/generation.h"

#include <algorithm>

#include "sampling/sampler.h"
#include "sampling/stop_matcher.h"

namespace weir::engine {
namespace {

std::size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

bool contains(std::span<const TokenId> ids, TokenId id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

bool ends_generation(const LoadedModel& loaded, const GenerationRequest& request, TokenId id) {
  return (!request.ignore_end && contains(loaded.tokenizer->end_of_generation, id)) || contains(request.sampling.stop_tokens, id);
}

}  // namespace

double GenerationResult::prefill_tokens_per_s() const {
  return prefill_s > 0 ? static_cast<double>(prompt_tokens - cached_tokens) / prefill_s : 0;
}

double GenerationResult::decode_tokens_per_s() const {
  return decode_s > 0 && ids.size() > 1 ? static_cast<double>(ids.size() - 1) / decode_s : 0;
}

Result<std::optional<DType>> parse_kv_type(const std::string& name) {
  if (name == "auto") return std::nullopt;
  const auto type = dtype_from_name(name);
  if (type == DType::kF32 || type == DType::kF16 || type == DType::kBF16 || type == DType::kQ8_0) return type;
  return fail(ErrorCode::kInvalidArgument, "the KV cache can be f32, f16, bf16 or q8_0, not '{}'", name);
}

Generator::Generator(LoadedModel& loaded, const GenerationOptions& options, const Clock& clock)
    : loaded_(loaded),
      options_(options),
      clock_(clock),
      runner_(*loaded.model, {.max_tokens = options.context, .kv_type = options.kv_type}) {}

// Goes on with the sequence when the prompt starts with what it holds (and adds something), else starts a new one. An answer is part of
// the next prompt: where the phases' bits differ, its positions are computed again, so that nothing depends on what was held.
Status Generator::reuse_or_reopen(std::span<const TokenId> prompt, GenerationResult& result) {
  const std::size_t kept = loaded_.backend->phases_differ() ? prompted_ : cached_.size();
  const bool extends = sequence_.valid() && kept > 0 && common_prefix(prompt, cached_) >= kept && kept < prompt.size();
  if (extends && runner_.truncate(sequence_, static_cast<std::int64_t>(kept))) {
    cached_.resize(kept);
    result.cached_tokens = static_cast<std::int64_t>(kept);
    return {};
  }
  if (sequence_.valid()) runner_.close(sequence_);
  cached_.clear();
  WEIR_ASSIGN(sequence_, runner_.open(static_cast<std::int32_t>(prompt.size())));
  return {};
}

// The new part of the prompt, chunk by chunk; between chunks the caller may cancel (then the result has no rows).
Result<kernels::Matrix> Generator::prefill(std::span<const TokenId> prompt, GenerationResult& result, const TextSink& on_text) {
  const TimePoint start = clock_.now();
  kernels::Matrix logits;
  while (cached_.size() < prompt.size()) {
    if (!on_text("")) return kernels::Matrix();
    const std::size_t size = std::min(prompt.size() - cached_.size(), static_cast<std::size_t>(std::max(options_.prefill_chunk, 1)));
    const auto part = prompt.subspan(cached_.size(), size);
    const bool last = cached_.size() + size == prompt.size();
    const Piece pieces[] = {{sequence_, part, last ? Outputs::kLast : Outputs::kNone, true}};
    WEIR_ASSIGN(logits, runner_.step(pieces));
    cached_.insert(cached_.end(), part.begin(), part.end());
    prompted_ = cached_.size();
  }
  result.prefill_s = to_seconds(clock_.now() - start);
  return logits;
}

// Tokens that may be generated; refuses a request that cannot be served as it is.
Result<std::int64_t> Generator::token_limit(const GenerationRequest& request) const {
  WEIR_TRY(sampling::validate(request.sampling));
  if (request.max_tokens < 0) return fail(ErrorCode::kInvalidArgument, "max_tokens must not be negative");
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  if (prompt == 0) return fail(ErrorCode::kInvalidArgument, "the prompt is empty: it gives no tokens");
  const std::int64_t room = options_.context - prompt;
  if (room < 1)
    return fail(ErrorCode::kInvalidArgument, "the prompt has {} tokens and the context {}: use a larger --context or a shorter prompt",
                prompt, options_.context);
  return request.max_tokens == 0 ? room : std::min(room, request.max_tokens);
}

Status Generator::decode(const GenerationRequest& request, std::int64_t limit, kernels::Matrix logits, TimePoint start,
                         GenerationResult& result, const TextSink& on_text) {
  sampling::Sampler sampler(request.sampling);
  sampler.see_prompt(request.prompt);
  sampling::StopMatcher stops(request.sampling.stop);
  tokenizer::StreamDecoder decoder(loaded_.tokenizer);
  const auto emit = [&](const std::string& settled) {
    result.text += settled;
    return on_text(settled);
  };
  TimePoint first_token = start;
  result.finish = FinishReason::kLength;
  while (true) {
    WEIR_ASSIGN(const TokenId id, sampler.sample(logits.row_span(0), cached_.size()));
    if (request.sampling.logprobs >= 0)
      result.logprobs.push_back(sampling::token_logprobs(logits.row_span(0), id, request.sampling.logprobs));
    if (result.ids.empty()) first_token = clock_.now();
    result.ids.push_back(id);
    const bool end = ends_generation(loaded_, request, id);
    const bool open = end || emit(stops.push(decoder.push(id)));
    if (end || stops.stopped()) result.finish = FinishReason::kStop;
    if (!open) result.finish = FinishReason::kCancelled;
    if (end || stops.stopped() || !open || static_cast<std::int64_t>(result.ids.size()) == limit) break;
    const Piece pieces[] = {{sequence_, {&id, 1}, Outputs::kLast}};
    WEIR_ASSIGN(logits, runner_.step(pieces));
    cached_.push_back(id);
  }
  result.first_token_s = to_seconds(first_token - start);
  result.decode_s = to_seconds(clock_.now() - first_token);
  const std::string rest = stops.push(decoder.finish());
  if (const std::string last = rest + stops.finish(); !last.empty()) emit(last);
  return {};
}

Result<GenerationResult> Generator::generate(const GenerationRequest& request, const TextSink& on_text) {
  WEIR_ASSIGN(const std::int64_t limit, token_limit(request));
  WEIR_TRY(loaded_.require_tokenizer());
  const TimePoint start = clock_.now();
  GenerationResult result{.prompt_tokens = static_cast<std::int64_t>(request.prompt.size())};
  WEIR_TRY(reuse_or_reopen(request.prompt, result));
  WEIR_ASSIGN(const kernels::Matrix logits, prefill(request.prompt, result, on_text));
  if (logits.rows == 0) {
    result.finish = FinishReason::kCancelled;
    return result;
  }
  WEIR_TRY(decode(request, limit, logits, start, result, on_text));
  return result;
}

}  // namespace weir::engine
