// SPDX-License-Identifier: Apache-2.0
#include "engine/scoring.h"

#include <algorithm>
#include <cmath>

#include "engine/runner.h"
#include "engine/text_input.h"

namespace weir::engine {
namespace {

Status check_ids(const LoadedModel& loaded, std::span<const TokenId> ids) {
  const model::Traits& traits = loaded.model->traits();
  if (traits.encoder) return fail(ErrorCode::kUnsupported, "{} is an encoder: it predicts no tokens", loaded.path.string());
  if (ids.size() < 2) return fail(ErrorCode::kInvalidArgument, "{} tokens: nothing follows another", ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= traits.vocab_size)
      return fail(ErrorCode::kInvalidArgument, "token {}: the id {} is not in the vocabulary of {}", i, ids[i], traits.vocab_size);
  const std::int64_t most = input_limit(loaded, 0);
  if (most > 0 && static_cast<std::int64_t>(ids.size()) > most)
    return fail(ErrorCode::kInvalidArgument, "{} tokens, and this model reads at most {}", ids.size(), most);
  return {};
}

}  // namespace

Status score_tokens(LoadedModel& loaded, std::span<const TokenId> ids, const ScoringOptions& options, const ScoreSink& sink) {
  WEIR_TRY(check_ids(loaded, ids));
  const std::span<const TokenId> read = ids.first(ids.size() - 1);  // the last one's row predicts what nobody asks for
  Runner runner(*loaded.model, {.max_tokens = static_cast<std::int64_t>(read.size()), .kv_type = options.kv_type});
  WEIR_ASSIGN(const SeqId sequence, runner.open(static_cast<std::int32_t>(ids.size())));
  const auto chunk = static_cast<std::size_t>(std::max(options.chunk, 1));
  for (std::size_t begin = 0; begin < read.size(); begin += chunk) {
    const Piece piece{sequence, read.subspan(begin, std::min(chunk, read.size() - begin)), Outputs::kAll, true};
    WEIR_ASSIGN(const kernels::Matrix rows, runner.step({&piece, 1}));
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      const std::size_t position = begin + static_cast<std::size_t>(r) + 1;
      const sampling::TokenLogprobs score = sampling::token_logprobs(rows.row_span(r), ids[position], std::max(options.top_n, 0));
      if (std::isnan(score.token.logprob))
        return fail(ErrorCode::kCorrupt, "token {}: the model's output is not a number; its weights may be damaged", position);
      WEIR_TRY(sink(static_cast<std::int64_t>(position), score));
    }
  }
  return {};
}

Result<std::vector<sampling::TokenLogprobs>> score_tokens(LoadedModel& loaded, std::span<const TokenId> ids,
                                                          const ScoringOptions& options) {
  std::vector<sampling::TokenLogprobs> out;
  WEIR_TRY(score_tokens(loaded, ids, options, [&](std::int64_t, const sampling::TokenLogprobs& score) -> Status {
    out.push_back(score);
    return {};
  }));
  return out;
}

Result<ContinuationScore> score_continuation(LoadedModel& loaded, std::span<const TokenId> context, std::span<const TokenId> continuation,
                                             const ScoringOptions& options) {
  if (context.empty() || continuation.empty())
    return fail(ErrorCode::kInvalidArgument, "a context of {} tokens and a continuation of {}", context.size(), continuation.size());
  std::vector<TokenId> ids(context.begin(), context.end());
  ids.insert(ids.end(), continuation.begin(), continuation.end());
  ContinuationScore out;
  ScoringOptions one = options;
  one.top_n = 1;
  WEIR_TRY(score_tokens(loaded, ids, one, [&](std::int64_t position, const sampling::TokenLogprobs& score) -> Status {
    if (position < static_cast<std::int64_t>(context.size())) return {};
    out.logprob += score.token.logprob;
    out.is_greedy = out.is_greedy && score.top.front().id == score.token.id;
    ++out.tokens;
    return {};
  }));
  return out;
}

}  // namespace weir::engine
