// SPDX-License-Identifier: Apache-2.0
// What is given to a model that reads a whole text at once: a text, two texts that are read together, or ids. It is cut only when
// the caller asks for it, and how much was cut is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/loaded_model.h"

namespace weir::engine {

struct TextPair {
  std::string first, second;
};
using TextInput = std::variant<std::string, std::vector<TokenId>, TextPair>;

struct EncodedInput {
  std::vector<TokenId> ids;
  std::vector<std::int32_t> types;  // token types of a pair, when the model has them
  std::int64_t cut = 0;             // tokens that were left out
};

struct InputLimits {
  std::int64_t most = 0;  // tokens, special ones included; 0 = no end
  bool cut = false;       // what is longer is cut there, special tokens kept; else it is kInvalidArgument
};

// Tokens that the model can read at once, 0 = no end: its positions, the context that it was made for, and `files_limit` if > 0.
std::int64_t input_limit(const LoadedModel& loaded, std::int64_t files_limit);

// The limits for a request's inputs; kInvalidArgument for a limit below 1.
Result<InputLimits> request_limits(std::int64_t model_limit, std::optional<std::int64_t> asked, bool cut);

// Ids as they are given; a text as the model's tokenizer wraps it, with nothing in it parsed as a special token; a pair by the
// tokenizer's template. A pair is cut where it is longer, as the tokenizers library does ("longest first"); ids at their end.
Result<EncodedInput> encode_input(const LoadedModel& loaded, const TextInput& input, const InputLimits& limits);

}  // namespace weir::engine
