// SPDX-License-Identifier: Apache-2.0
// What an answer consists of for a client, piece by piece, before any dialect has written it: text, reasoning, calls of tools.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/api_error.h"
#include "engine/completion.h"

namespace weir::api {

// A part of one call. The first part of a call carries id and name, later ones only more of the arguments (JSON text).
struct ToolCallDelta {
  std::int32_t index = 0;  // of the call within the answer, from 0
  std::string id = {};
  std::string name = {};
  std::string arguments = {};
};

// What the output parser makes of a piece of the model's text. Pieces put together are the answer.
struct ParsedDelta {
  std::string content = {};
  std::string reasoning = {};
  std::vector<ToolCallDelta> tool_calls = {};
  bool empty() const { return content.empty() && reasoning.empty() && tool_calls.empty(); }
};

enum class Ending { kStop, kLength, kToolCalls, kCancelled, kFailed };

struct ChoiceEnd {
  Ending ending = Ending::kStop;
  std::string stop_text = {};
  std::optional<ApiError> error = {};  // of kFailed
  engine::Finish finish = {};
};

// What a writer is given for one answer.
struct ChoiceDelta {
  std::int32_t choice = 0;  // prompt × n + answer
  ParsedDelta parsed = {};
  std::string text = {};                                      // the same before parsing, for text completions
  std::vector<TokenId> tokens = {};                           // that came, for logprobs and ids
  std::vector<sampling::TokenLogprobs> logprobs = {};         // one for each token, when asked for
  std::vector<sampling::TokenLogprobs> prompt_logprobs = {};  // from the prompt's second token on
  std::optional<ChoiceEnd> end = {};
};

struct Usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0, reasoning_tokens = 0;
};

// For `timings` and headers; times of the first answer of the request that took longest.
struct Timings {
  double queue_ms = 0, prefill_ms = 0, decode_ms = 0, ttft_ms = 0, total_ms = 0;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, drafted_tokens = 0, accepted_tokens = 0;
  std::optional<double> energy_j = {};  // an estimate
  std::string energy_source = {};       // how it was estimated
};

}  // namespace weir::api
