// SPDX-License-Identifier: Apache-2.0
// One request at a time: a prompt in, a stream of text out, with the times that describe it. Many requests at once are the
// engine's business; this is what the terminal and the evaluations use.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/completion.h"
#include "engine/loaded_model.h"
#include "engine/runner.h"
#include "sampling/logprobs.h"

namespace weir::engine {

struct GenerationRequest {
  std::vector<TokenId> prompt;
  sampling::SamplingParams sampling;
  std::int64_t max_tokens = 0;  // 0 = as many as the context has room for
  bool ignore_end = false;      // go on after the model's end-of-generation tokens; stop_tokens still end it
};

// Gets whole UTF-8 text as it is settled, stop strings never; "" between chunks of a long prompt. Returning false cancels.
using TextSink = std::function<bool(std::string_view)>;

struct GenerationResult {
  std::string text = {};
  std::vector<TokenId> ids = {};  // generated, the ending token included
  FinishReason finish = FinishReason::kStop;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;                      // of the prompt, taken from the sequence as it was
  double first_token_s = 0;                            // from the call to the first token's choice
  double prefill_s = 0;                                // in forward passes of the prompt
  double decode_s = 0;                                 // from the first token to the last
  std::vector<sampling::TokenLogprobs> logprobs = {};  // one per generated token, when asked for

  double prefill_tokens_per_s() const;
  double decode_tokens_per_s() const;  // steps after the first token
};

struct GenerationOptions {
  std::int64_t context = 4096;  // tokens of prompt and answer together
  std::int32_t prefill_chunk = 256;
  std::optional<DType> kv_type = {};  // none: what suits the backend best
};

// "f32", "f16", "bf16", "q8_0", or "auto" for the backend's choice.
Result<std::optional<DType>> parse_kv_type(const std::string& name);

// Keeps one sequence between calls, so that a chat's next prompt costs only its new tokens.
class Generator {
 public:
  Generator(LoadedModel& loaded, const GenerationOptions& options, const Clock& clock = steady_clock());

  // kInvalidArgument for an empty prompt, bad sampling parameters or a prompt that leaves no room in the context: prompts are
  // never cut.
  Result<GenerationResult> generate(const GenerationRequest& request, const TextSink& on_text);

 private:
  Result<std::int64_t> token_limit(const GenerationRequest& request) const;
  Result<kernels::Matrix> prefill(std::span<const TokenId> prompt, GenerationResult& result, const TextSink& on_text);
  Status decode(const GenerationRequest& request, std::int64_t limit, kernels::Matrix logits, TimePoint start, GenerationResult& result,
                const TextSink& on_text);
  Status reuse_or_reopen(std::span<const TokenId> prompt, GenerationResult& result);

  LoadedModel& loaded_;
  GenerationOptions options_;
  const Clock& clock_;
  Runner runner_;
  SeqId sequence_;
  std::vector<TokenId> cached_;  // the tokens that the sequence's memory holds
  std::size_t prompted_ = 0;     // the first so many were read as a prompt's
};

}  // namespace weir::engine
