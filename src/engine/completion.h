// SPDX-License-Identifier: Apache-2.0
// What crosses the seam between those who serve and the engine: a request, its events and its times, as plain data that can
// also be sent to another process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/step_cost.h"
#include "grammar/grammar.h"
#include "sampling/logprobs.h"
#include "sampling/sampling_params.h"

namespace weir::engine {

enum class FinishReason { kStop, kLength, kCancelled, kFailed };
const char* finish_reason_name(FinishReason reason);  // "stop", "length", "cancelled", "error"

struct CompletionRequest {
  std::string name = {};  // the caller's, for messages
  std::vector<TokenId> prompt = {};
  sampling::SamplingParams sampling = {};
  std::int64_t max_tokens = 0;        // of each answer; 0 = as many as the context has room for
  std::int64_t min_tokens = 0;        // no end of generation before, unless a grammar leaves nothing else
  std::int32_t answers = 1;           // to the one prompt, with different random numbers; at most kMaxAnswers
  bool ignore_end = false;            // go on after the model's end-of-generation tokens; the request's own stop tokens still end it
  std::int32_t prompt_logprobs = -1;  // as SamplingParams::logprobs, for the prompt's tokens
  bool show_special = false;          // special tokens are part of the text; those that end the answer never are
  bool prompt_only = false;           // nothing is generated: for the prompt's logprobs, or to have it in the prefix cache
  std::optional<grammar::GrammarSpec> grammar = {};  // what each answer must look like

  std::string adapter = {};     // by its name; empty = the model as it is
  std::int32_t priority = 0;    // higher goes first, under the policy that looks at it
  std::string tenant = {};      // whose share it uses, and who shares its cached prefixes
  std::string cache_salt = {};  // keeps its prefixes apart from all with another salt
  Duration ttft_target{};       // wanted until the first token; 0 = none
  Duration tpot_target{};       // wanted between tokens
  Duration queue_limit{};       // given up when it has not begun by then; 0 = none
  Duration time_limit{};        // ended where it is then; 0 = none
  bool speculate = true;        // guesses may be verified several at a time: the tokens are the same
};
inline constexpr std::int32_t kMaxAnswers = 128;

// The prompt's positions [first, first + tokens) ran in a step that ended at `end`.
struct PrefillChunk {
  std::int32_t first = 0, tokens = 0;
  Duration end{};
};

// When what happened; all since `queued`.
struct Timeline {
  TimePoint queued{};
  Duration started{};      // the first step with a row of it began; 0 when none did
  Duration first_token{};  // chosen; 0 when none was
  Duration finished{};
  std::int32_t cached_tokens = 0;  // of the prompt, found in the prefix cache
  std::int32_t preemptions = 0;
  std::vector<PrefillChunk> chunks = {};
  std::vector<Duration> tokens = {};  // of this answer, one each; equal times: they came of one step
};

// How an answer ended, and what it took.
struct Finish {
  FinishReason reason = FinishReason::kStop;
  std::string stop_text = {};                          // the stop string that ended it
  std::optional<Error> error = {};                     // of kFailed; also of kCancelled when a limit of time was the reason
  std::int64_t generated = 0;                          // tokens, the ending one included
  std::int64_t drafted = 0, accepted = 0, forced = 0;  // guesses verified, guesses that were right, tokens that a grammar left no choice of
  Timeline timeline = {};
  // What the request's rows took in the model until now, its share of each step by positions: bound_of() says what bounded it.
  StepBreakdown cost = {};
};

// What happened to one answer since its last event. The parts of all its events put together are the answer.
struct CompletionEvent {
  std::int32_t answer = 0;
  std::vector<TokenId> tokens = {};
  std::string text = {};                                      // settled: whole characters, and nothing that may still become a stop string
  std::vector<sampling::TokenLogprobs> logprobs = {};         // one for each token, when asked for
  std::vector<sampling::TokenLogprobs> prompt_logprobs = {};  // of the prompt from its second token on; in the events of answer 0
  std::optional<Finish> finish = {};
  bool last = false;  // of the whole request
};

}  // namespace weir::engine
