// SPDX-License-Identifier: Apache-2.0
// What a request may ask of sampling. The defaults change nothing: greedy, no filter, no penalty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace weir::sampling {

struct SamplingParams {
  float temperature = 0;   // 0 = greedy; at most 100
  std::int32_t top_k = 0;  // 0 = all
  float top_p = 1;         // (0, 1]
  float min_p = 0;         // [0, 1]: relative to the likeliest token
  float typical_p = 1;     // (0, 1]: locally typical sampling (Meister et al. 2022, arXiv:2202.00666)
  float repetition_penalty =
      1;  // > 0: divides positive and multiplies negative logits of tokens in prompt and answer (CTRL, arXiv:1909.05858)
  float frequency_penalty = 0;                             // [-2, 2]: subtracted for each time that the answer holds the token
  float presence_penalty = 0;                              // [-2, 2]: subtracted when the answer holds the token
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // each in [-100, 100]
  std::optional<std::uint64_t> seed = {};                  // absent = a new one for each request
  std::vector<std::string> stop = {};                      // texts that end the answer; at most 64 of at most 4096 bytes
  std::vector<TokenId> stop_tokens = {};                   // ids that end the answer, beside the model's own
  std::int32_t logprobs = -1;                              // -1 = none; n = the chosen token's and the n likeliest (at most 1000)

  bool greedy() const { return temperature == 0; }
};

// kInvalidArgument naming the parameter, its value and what is allowed.
Status validate(const SamplingParams& params);

}  // namespace weir::sampling
