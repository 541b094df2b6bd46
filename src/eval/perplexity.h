// SPDX-License-Identifier: Apache-2.0
// Perplexity of a text in fixed windows, by the convention of llama.cpp's tool, so that figures can be compared: the text is
// tokenised once, cut into windows of `context` tokens that run alone from position 0 (their first token replaced by BOS
// when the model wants one), and the second half of each window is scored.
#pragma once

#include <filesystem>
#include <functional>

#include "engine/loaded_model.h"

namespace weir::eval {

struct PerplexityOptions {
  std::int64_t context = 512;
  std::int64_t windows = 0;  // 0 = all whole windows of the text
  bool score_all = false;    // score every position of a window, not only its second half
  std::int32_t chunk = 128;  // rows of a forward pass
  bool as_answer = false;    // rows in the arithmetic of answers, not of prompts, where the two differ
};

struct PerplexityResult {
  double perplexity = 0;
  double mean_nll = 0;
  double standard_error = 0;  // of the perplexity, from the spread of the NLLs
  std::int64_t scored_tokens = 0;
  std::int64_t windows = 0;
  std::int64_t text_tokens = 0;
  double seconds = 0;
};

// `progress(done, total, running perplexity)` is called after each window; returning false stops with kCancelled.
Result<PerplexityResult> measure_perplexity(engine::LoadedModel& loaded, std::span<const TokenId> ids, const PerplexityOptions& options,
                                            const std::function<bool(std::int64_t, std::int64_t, double)>& progress = {});

// The ids of a text file as this measurement wants them.
Result<std::vector<TokenId>> read_text_ids(const engine::LoadedModel& loaded, const std::filesystem::path& text);

json::Object to_json(const PerplexityResult& result, const PerplexityOptions& options);

}  // namespace weir::eval
