// SPDX-License-Identifier: Apache-2.0
// Log probabilities under the model's own distribution: softmax of the raw logits, before any processor, as vLLM and OpenAI
// report them. The same function serves prompt tokens and generated ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace weir::sampling {

struct TokenLogprob {
  TokenId id;
  double logprob;
};

struct TokenLogprobs {
  TokenLogprob token;             // the one asked about
  std::int64_t rank;              // 1 = the likeliest; ties share the lowest
  std::vector<TokenLogprob> top;  // the likeliest n, best first; ties go to the lower id
};

// `id` must be within the logits.
TokenLogprobs token_logprobs(std::span<const float> logits, TokenId id, std::int32_t top_n);

// log(sum(exp(logits))), summed in double in an order fixed by the length.
double log_sum_exp(std::span<const float> logits);

// The lowest index among the largest values.
TokenId argmax(std::span<const float> values);

}  // namespace weir::sampling
