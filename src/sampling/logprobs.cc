// SPDX-License-Identifier: Apache-2.0
#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "sampling/exponential.h"
#include "sampling/scan.h"

namespace weir::sampling {

double log_sum_exp(std::span<const float> logits) {
  const float top = scan(logits).max;
  return top + std::log(sum_of_weights(logits, top));
}

TokenId argmax(std::span<const float> values) { return std::max(scan(values).first, 0); }

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId id, std::int32_t top_n) {
  WEIR_CHECK(id >= 0 && static_cast<std::size_t>(id) < logits.size(), "token {} of {}", id, logits.size());
  const double sum = log_sum_exp(logits);
  const float own = logits[static_cast<std::size_t>(id)];
  TokenLogprobs result{.token = {id, own - sum}, .rank = 1, .top = {}};
  for (float v : logits) result.rank += v > own;

  // A heap of the best so far, the worst of them on top.
  const auto count = std::min(static_cast<std::size_t>(std::max(top_n, 0)), logits.size());
  const auto better = [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
  };
  for (std::size_t i = 0; i < logits.size() && count > 0; ++i) {
    const TokenLogprob entry{static_cast<TokenId>(i), logits[i]};
    if (result.top.size() == count) {
      if (!better(entry, result.top.front())) continue;
      std::pop_heap(result.top.begin(), result.top.end(), better);
      result.top.pop_back();
    }
    result.top.push_back(entry);
    std::push_heap(result.top.begin(), result.top.end(), better);
  }
  std::sort_heap(result.top.begin(), result.top.end(), better);
  for (TokenLogprob& entry : result.top) entry.logprob -= sum;
  return result;
}

}  // namespace weir::sampling
