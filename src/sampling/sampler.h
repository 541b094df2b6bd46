// SPDX-License-Identifier: Apache-2.0
// One sequence's sampling: its parameters, its seed and the tokens it has seen. Nothing is allocated per token once the buffers
// have grown to the vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "sampling/candidates.h"
#include "sampling/sampling_params.h"

namespace weir::sampling {

class Sampler {
 public:
  // The params must be valid(ated). `sequence` tells apart several answers to one request.
  explicit Sampler(const SamplingParams& params, std::uint64_t sequence = 0);

  // Tokens that the penalties should know: the prompt's, once.
  void see_prompt(std::span<const TokenId> tokens);

  // The token at `position` of the sequence; it then counts as seen. `allowed` is a grammar's mask, one bit per token, lowest bit
  // first; empty = all. kInvalidArgument when a logit is NaN or +inf, or when no token is left to choose.
  Result<TokenId> sample(std::span<const float> logits, std::uint64_t position, std::span<const std::uint32_t> allowed = {});

  // Drawing under a constraint that is cheaper to ask of one token than to list for all: a token is drawn as if there were none; one that
  // is refused is left out and another drawn, with another random number; after a few, redraw() draws among the allowed ones. The
  // distribution is that of sample() with the mask: with Z for the probability of all allowed tokens, an allowed one has p/Z if it has
  // so after each refusal r, and p + Σr p(r) · (p/(1-p(r))) / (Z/(1-p(r))) = p + (1-Z)·p/Z = p/Z. Only where no filter looks at the whole
  // distribution, which draws_freely() tells. Neither counts the token as seen.
  bool draws_freely() const;
  Result<TokenId> draw(std::span<const float> logits, std::uint64_t position, std::span<const TokenId> refused = {});
  Result<TokenId> redraw(std::span<const float> logits, std::uint64_t position, std::span<const std::uint32_t> allowed);

  // A token of the answer that sample() did not give: it counts as seen.
  void see(TokenId id) {
    if (has_penalties()) ++count(id).answered;
  }

  std::uint64_t seed() const { return seed_; }

 private:
  bool has_penalties() const;
  struct Counts {
    TokenId id = 0;
    std::int32_t answered = 0;  // how often it stands in the answer
  };
  Counts& count(TokenId id);
  void apply_mask(std::span<const std::uint32_t> allowed);
  void apply_bias_and_penalties();
  std::span<const float> processed(std::span<const float> logits, std::span<const std::uint32_t> allowed, std::span<const TokenId> refused);
  std::uint64_t stream(std::uint64_t attempt) const { return sequence_ | attempt << 56; }  // no answer has such a number
  Result<TokenId> choose(std::span<const float> logits, std::uint64_t position, std::uint64_t sequence);
  TokenId choose_by(std::span<const float> logits, float top, double u);

  SamplingParams params_;
  std::uint64_t seed_, sequence_;
  std::vector<Counts> seen_;   // in prompt or answer, by id; kept only when a penalty needs it
  std::vector<float> logits_;  // changed copy
  Candidates candidates_;
};

}  // namespace weir::sampling
