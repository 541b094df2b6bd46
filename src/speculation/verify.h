// SPDX-License-Identifier: Apache-2.0
// What comes of guesses once the target has run them as rows. Each row's token is drawn as plain decoding would draw it there; while
// it equals the guess, the next row has seen the right tokens and counts too. So the tokens are those of plain decoding, all of them,
// greedy or sampled: what is random in a draw belongs to its position and not to the step it is made in.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace weir::speculation {

struct Drawn {
  TokenId token = 0;
  bool ends = false;  // nothing may follow: end of generation, a stop string, the last token allowed
};

// Appends the tokens to `result`: the right guesses and the token behind them. draw(i) → Result<Drawn> of the i-th row whose logits
// were asked for, called in order and only for rows that count, as stateful samplers and grammars need it. Returns how many guesses
// were right.
template <class Draw>
Result<std::size_t> verify(std::span<const TokenId> guesses, Draw&& draw, std::vector<TokenId>& result) {
  for (std::size_t i = 0;; ++i) {
    WEIR_ASSIGN(const Drawn drawn, draw(i));
    result.push_back(drawn.token);
    const bool right = i < guesses.size() && drawn.token == guesses[i];
    if (!right || drawn.ends) return right ? i + 1 : i;
  }
}

}  // namespace weir::speculation
