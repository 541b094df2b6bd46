// SPDX-License-Identifier: Apache-2.0
// For this folder's tests only: a model that knows nothing. It picks allowed tokens at random, and after a while those that bring an
// answer to its end.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "grammar/matcher.h"

namespace weir::grammar::testing {

struct RandomAnswer {
  std::vector<TokenId> tokens;  // without the end token
  std::string text;
  bool whole = false;  // the grammar let it end
};

// `patience`: tokens before it wants to end; it gives up after `most`.
Result<RandomAnswer> random_answer(Matcher& matcher, std::uint64_t seed, std::size_t patience = 40, std::size_t most = 400);

}  // namespace weir::grammar::testing
