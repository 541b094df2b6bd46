// SPDX-License-Identifier: Apache-2.0
// Prompts for measuring: ordinary tokens (no control, unknown or unused ones) in an order that a seed fixes.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/loaded_model.h"

namespace weir::bench {

// Tokens that a text could have, ascending; never empty, all within the model's vocabulary. Without a tokenizer: all.
std::vector<TokenId> ordinary_tokens(const engine::LoadedModel& loaded);

// `count` of `tokens`, drawn evenly; the same seed and sequence give the same prompt.
std::vector<TokenId> random_prompt(const std::vector<TokenId>& tokens, std::int64_t count, std::uint64_t seed, std::uint64_t sequence);

}  // namespace weir::bench
