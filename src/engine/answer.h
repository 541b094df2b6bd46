// SPDX-License-Identifier: Apache-2.0
// One answer being written: draws its tokens, turns them into settled text, and knows when it ends. All that it does depends on
// its request, its number and the logits alone, so the same answer comes out however the steps were cut.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/completion.h"
#include "grammar/matcher.h"
#include "sampling/sampler.h"
#include "sampling/stop_matcher.h"
#include "tokenizer/tokenizer.h"

namespace weir::engine {

class Answer {
 public:
  // `tokenizer` may be null: no text then. `limit` > 0 is the most tokens that it may have.
  Answer(const CompletionRequest& request, std::span<const TokenId> prompt, std::int32_t number, std::int64_t limit,
         std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

  // The token at `position` of the sequence by these logits. `allowed` as in sampling::Sampler.
  Result<TokenId> choose(std::span<const float> logits, std::uint64_t position, std::span<const std::uint32_t> allowed = {});

  // The same under a grammar, which then has gone on by the token. Draws that do
  // not need the mask of all tokens ask for the one token first (sampling::Sampler::draws_freely).
  Result<TokenId> choose(std::span<const float> logits, std::uint64_t position, grammar::Matcher& matcher);
  bool needs_masks() const { return !sampler_.draws_freely(); }

  // Appends a token. True when the answer ends with it.
  bool take(TokenId id);
  // The same for one that choose() was not asked for, since a grammar leaves no other.
  bool take_forced(TokenId id);
  void add_logprobs(std::span<const float> logits, TokenId id);

  // It ends here, for a reason from outside.
  void end(FinishReason reason, std::optional<Error> error = {});

  bool ended() const { return ended_; }
  std::int32_t number() const { return number_; }
  std::int64_t generated() const { return generated_; }
  std::int64_t left() const { return limit_ - generated_; }
  std::uint64_t seed() const { return sampler_.seed(); }
  bool wants_logprobs() const { return logprobs_ >= 0; }

  // What came since the last call, the end included (its timeline is the caller's to fill); nothing when nothing came.
  std::optional<CompletionEvent> take_event();

  std::int64_t drafted = 0, accepted = 0, forced = 0;  // counted by whoever verifies

 private:
  bool is_model_end(TokenId id) const;
  bool is_end(TokenId id) const;
  bool ends_too_early(TokenId id) const;
  std::span<const std::uint32_t> without_ends(std::size_t vocabulary, std::span<const std::uint32_t> allowed);

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::int32_t number_, logprobs_;
  std::int64_t limit_, least_, generated_ = 0;
  bool ignore_end_, ended_ = false;
  std::vector<TokenId> more_ends_;
  sampling::Sampler sampler_;
  sampling::StopMatcher stops_;
  std::optional<tokenizer::StreamDecoder> decoder_;
  std::vector<std::uint32_t> mask_;  // while ends are not allowed
  CompletionEvent event_;
};

}  // namespace weir::engine
