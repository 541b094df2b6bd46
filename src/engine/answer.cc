// SPDX-License-Identifier: Apache-2.0
#include "engine/answer.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace weir::engine {
namespace {

constexpr std::size_t kDraws = 4;  // of a token that the grammar is asked about, before all tokens are: a mask costs as much as several

bool contains(std::span<const TokenId> ids, TokenId id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

void forbid(std::span<std::uint32_t> mask, TokenId id) {
  const auto word = static_cast<std::size_t>(id) / 32;
  if (id >= 0 && word < mask.size()) mask[word] &= ~(1u << (id % 32));
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kCancelled: return "cancelled";
    case FinishReason::kFailed: return "error";
  }
  return "unknown";
}

Answer::Answer(const CompletionRequest& request, std::span<const TokenId> prompt, std::int32_t number, std::int64_t limit,
               std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)),
      number_(number),
      logprobs_(request.sampling.logprobs),
      limit_(limit),
      least_(std::min(request.min_tokens, limit)),
      ignore_end_(request.ignore_end),
      more_ends_(request.sampling.stop_tokens),
      sampler_(request.sampling, static_cast<std::uint64_t>(number)),
      stops_(request.sampling.stop) {
  sampler_.see_prompt(prompt);
  if (tokenizer_) decoder_.emplace(tokenizer_, request.show_special);
  event_.answer = number;
}

bool Answer::is_model_end(TokenId id) const { return !ignore_end_ && tokenizer_ && contains(tokenizer_->end_of_generation, id); }

// The model's own end comes before min_tokens only where a grammar leaves nothing else.
bool Answer::is_end(TokenId id) const { return is_model_end(id) || (generated_ >= least_ && contains(more_ends_, id)); }

// The grammar is kept in any case: where it allows ends only, they stay.
std::span<const std::uint32_t> Answer::without_ends(std::size_t vocabulary, std::span<const std::uint32_t> allowed) {
  mask_.assign((vocabulary + 31) / 32, ~0u);
  std::copy_n(allowed.begin(), std::min(allowed.size(), mask_.size()), mask_.begin());
  for (const TokenId id : more_ends_) forbid(mask_, id);
  if (tokenizer_ && !ignore_end_) {
    for (const TokenId id : tokenizer_->end_of_generation) forbid(mask_, id);
  }
  return std::ranges::all_of(mask_, [](std::uint32_t word) { return word == 0; }) ? allowed : std::span<const std::uint32_t>(mask_);
}

Result<TokenId> Answer::choose(std::span<const float> logits, std::uint64_t position, std::span<const std::uint32_t> allowed) {
  if (generated_ < least_) allowed = without_ends(logits.size(), allowed);
  return sampler_.sample(logits, position, allowed);
}

bool Answer::ends_too_early(TokenId id) const { return generated_ < least_ && (is_model_end(id) || contains(more_ends_, id)); }

Result<TokenId> Answer::choose(std::span<const float> logits, std::uint64_t position, grammar::Matcher& matcher) {
  if (needs_masks()) {
    WEIR_ASSIGN(const auto mask, matcher.mask());
    WEIR_ASSIGN(const TokenId id, choose(logits, position, mask));
    WEIR_TRY(matcher.accept(id));
    return id;
  }
  std::array<TokenId, kDraws> refused;
  for (std::size_t i = 0; i < kDraws; ++i) {
    WEIR_ASSIGN(const TokenId id, sampler_.draw(logits, position, std::span(refused).first(i)));
    refused[i] = id;
    if (ends_too_early(id)) continue;
    if (const Status taken = matcher.accept(id); taken) {
      sampler_.see(id);
      return id;
    } else if (taken.error().code != ErrorCode::kInvalidArgument) {
      return std::unexpected(taken.error());
    }
  }
  WEIR_ASSIGN(auto mask, matcher.mask());
  if (generated_ < least_) mask = without_ends(logits.size(), mask);
  WEIR_ASSIGN(const TokenId id, sampler_.redraw(logits, position, mask));
  WEIR_TRY(matcher.accept(id));
  sampler_.see(id);
  return id;
}

void Answer::add_logprobs(std::span<const float> logits, TokenId id) {
  if (logprobs_ >= 0) event_.logprobs.push_back(sampling::token_logprobs(logits, id, logprobs_));
}

bool Answer::take(TokenId id) {
  WEIR_CHECK(!ended_ && generated_ < limit_, "a token behind the end of answer {}", number_);
  const bool last = is_end(id);
  ++generated_;
  event_.tokens.push_back(id);
  if (!last && decoder_) event_.text += stops_.push(decoder_->push(id));
  if (last || stops_.stopped()) {
    end(FinishReason::kStop);
  } else if (generated_ == limit_) {
    end(FinishReason::kLength);
  }
  return ended_;
}

bool Answer::take_forced(TokenId id) {
  sampler_.see(id);
  ++forced;
  return take(id);
}

void Answer::end(FinishReason reason, std::optional<Error> error) {
  if (ended_) return;
  ended_ = true;
  if (decoder_) event_.text += stops_.push(decoder_->finish());
  event_.text += stops_.finish();
  // Unfinished characters may complete a stop string after all.
  if (reason == FinishReason::kLength && stops_.stopped()) reason = FinishReason::kStop;
  event_.finish = Finish{.reason = reason,
                         .stop_text = stops_.matched(),
                         .error = std::move(error),
                         .generated = generated_,
                         .drafted = drafted,
                         .accepted = accepted,
                         .forced = forced};
}

std::optional<CompletionEvent> Answer::take_event() {
  if (event_.tokens.empty() && event_.text.empty() && event_.prompt_logprobs.empty() && !event_.finish) return std::nullopt;
  CompletionEvent event = std::move(event_);
  event_ = CompletionEvent();
  event_.answer = number_;
  return event;
}

}  // namespace weir::engine
