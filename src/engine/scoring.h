// SPDX-License-Identifier: Apache-2.0
// How likely a model finds a given text: the log probability of each of its tokens after those before it, exact, chunk by chunk, so
// that never more rows of the vocabulary are kept than a chunk has. The same rows and the same function as prompt logprobs of a request
// and `weir eval`.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/loaded_model.h"
#include "sampling/logprobs.h"

namespace weir::engine {

struct ScoringOptions {
  std::int32_t top_n = 0;  // the likeliest tokens at each place
  std::int32_t chunk = 64;
  std::optional<DType> kv_type = {};  // none: what suits the backend best
};

// Called for positions 1, 2, …: the first token has nothing before it. An error ends the scoring and is returned.
using ScoreSink = std::function<Status(std::int64_t position, const sampling::TokenLogprobs&)>;

// kInvalidArgument for fewer than two ids, ids out of range, or more than the model can hold; kUnsupported for encoders and models
// without a head; kCorrupt when a logit is not a number.
Status score_tokens(LoadedModel& loaded, std::span<const TokenId> ids, const ScoringOptions& options, const ScoreSink& sink);
Result<std::vector<sampling::TokenLogprobs>> score_tokens(LoadedModel& loaded, std::span<const TokenId> ids,
                                                          const ScoringOptions& options = {});

struct ContinuationScore {
  double logprob = 0;     // of all its tokens together
  bool is_greedy = true;  // each of them is the likeliest at its place
  std::int64_t tokens = 0;
};
// How likely `continuation` is after `context` (neither empty): what multiple-choice evaluations compare.
Result<ContinuationScore> score_continuation(LoadedModel& loaded, std::span<const TokenId> context, std::span<const TokenId> continuation,
                                             const ScoringOptions& options = {});

}  // namespace weir::engine
