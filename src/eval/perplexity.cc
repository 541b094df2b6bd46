// SPDX-License-Identifier: Apache-2.0
#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/file_io.h"
#include "engine/runner.h"
#include "sampling/logprobs.h"

namespace weir::eval {
namespace {

// Sums of NLLs in the order of the text: the figure does not depend on how windows are cut into passes.
struct NllSum {
  double sum = 0, squares = 0;
  std::int64_t count = 0;

  void add(double nll) {
    sum += nll;
    squares += nll * nll;
    ++count;
  }
  double mean() const { return count ? sum / static_cast<double>(count) : 0; }
  double standard_error() const {
    if (count < 2) return 0;
    const double variance = std::max(0.0, squares / static_cast<double>(count) - mean() * mean());
    return std::exp(mean()) * std::sqrt(variance / static_cast<double>(count - 1));
  }
};

// Rows [begin, end) of a window are scored: the logits at row i predict token i + 1.
Status score_window(engine::Runner& runner, std::span<const TokenId> window, std::int64_t first, const PerplexityOptions& options,
                    NllSum& sum) {
  WEIR_ASSIGN(const SeqId sequence, runner.open(static_cast<std::int32_t>(window.size())));
  const auto count = static_cast<std::int64_t>(window.size());
  const std::int64_t last = count - 1;
  for (std::int64_t begin = 0; begin < last;) {
    // A piece lies on one side of `first`, so that rows before it cost no logits.
    const std::int64_t limit = begin < first ? first : last;
    const std::int64_t rows = std::min<std::int64_t>(options.chunk, limit - begin);
    const bool scored = begin >= first;
    const engine::Piece pieces[] = {{sequence, window.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows)),
                                     scored ? engine::Outputs::kAll : engine::Outputs::kNone, !options.as_answer}};
    WEIR_ASSIGN(const kernels::Matrix logits, runner.step(pieces));
    for (std::int64_t r = 0; scored && r < rows; ++r) {
      const auto row = logits.row_span(r);
      sum.add(sampling::log_sum_exp(row) - row[static_cast<std::size_t>(window[static_cast<std::size_t>(begin + r + 1)])]);
    }
    begin += rows;
  }
  runner.close(sequence);
  return {};
}

Status check(const engine::LoadedModel& loaded, std::span<const TokenId> ids, const PerplexityOptions& options) {
  if (loaded.model->traits().encoder)
    return fail(ErrorCode::kUnsupported, "perplexity needs a model that predicts tokens; {} is an encoder", loaded.path.string());
  if (options.context < 4 || options.context > 1 << 20)
    return fail(ErrorCode::kInvalidArgument, "--context must be between 4 and 1048576, not {}", options.context);
  if (options.chunk < 1) return fail(ErrorCode::kInvalidArgument, "--chunk must be at least 1");
  if (static_cast<std::int64_t>(ids.size()) < options.context)
    return fail(ErrorCode::kInvalidArgument, "the text has {} tokens, one window needs {}: use a longer text or a smaller --context",
                ids.size(), options.context);
  return {};
}

}  // namespace

Result<PerplexityResult> measure_perplexity(engine::LoadedModel& loaded, std::span<const TokenId> ids, const PerplexityOptions& options,
                                            const std::function<bool(std::int64_t, std::int64_t, double)>& progress) {
  WEIR_TRY(check(loaded, ids, options));
  const std::int64_t available = static_cast<std::int64_t>(ids.size()) / options.context;
  const std::int64_t windows = options.windows > 0 ? std::min(options.windows, available) : available;
  const std::int64_t first = options.score_all ? 0 : options.context / 2;
  const TimePoint start = steady_clock().now();

  engine::Runner runner(*loaded.model, {.max_tokens = options.context});
  NllSum sum;
  std::vector<TokenId> window;
  for (std::int64_t w = 0; w < windows; ++w) {
    const auto begin = ids.begin() + w * options.context;
    window.assign(begin, begin + options.context);
    if (loaded.tokenizer && loaded.tokenizer->add_bos && loaded.tokenizer->bos) window.front() = *loaded.tokenizer->bos;
    WEIR_TRY(score_window(runner, window, first, options, sum));
    if (progress && !progress(w + 1, windows, std::exp(sum.mean())))
      return fail(ErrorCode::kCancelled, "stopped after {} of {} windows", w + 1, windows);
  }
  return PerplexityResult{.perplexity = std::exp(sum.mean()),
                          .mean_nll = sum.mean(),
                          .standard_error = sum.standard_error(),
                          .scored_tokens = sum.count,
                          .windows = windows,
                          .text_tokens = static_cast<std::int64_t>(ids.size()),
                          .seconds = to_seconds(steady_clock().now() - start)};
}

Result<std::vector<TokenId>> read_text_ids(const engine::LoadedModel& loaded, const std::filesystem::path& text) {
  WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded.require_tokenizer());
  WEIR_ASSIGN(const std::string content, read_file(text, std::uint64_t{1} << 30));
  return tokenizer->encode(content, {.add_special = true, .parse_special = false});
}

json::Object to_json(const PerplexityResult& r, const PerplexityOptions& options) {
  return {{"perplexity", r.perplexity},
          {"mean_nll", r.mean_nll},
          {"standard_error", r.standard_error},
          {"scored_tokens", r.scored_tokens},
          {"windows", r.windows},
          {"context", options.context},
          {"scored", options.score_all ? "all" : "second half"},
          {"text_tokens", r.text_tokens},
          {"seconds", r.seconds}};
}

}  // namespace weir::eval
