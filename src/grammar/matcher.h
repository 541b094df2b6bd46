// SPDX-License-Identifier: Apache-2.0
// One sequence's place in its grammar: what may come next, what must, and whether the answer may end. Its state is the tokens
// accepted so far, so after a preemption or a move it is rebuilt by accepting them again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "grammar/grammar.h"

struct weir_matcher;

namespace weir::grammar {

class Matcher {
 public:
  static Result<Matcher> create(std::shared_ptr<const Grammar> grammar);
  ~Matcher();
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;

  // The tokens that may come next: one bit each over the model's vocabulary, lowest bit first, as sampling::Sampler wants them. Valid
  // until the next call that is not const. Computed once for each position. kExhausted: the grammar became too much work here.
  Result<std::span<const std::uint32_t>> mask();
  // The masks here and after each of the guesses that is allowed in turn, then everything taken back; afterwards masks()[i] is the
  // mask after i guesses. May be fewer than guesses + 1: no mask follows a guess that the grammar forbids or that ends the answer.
  Status compute_masks(std::span<const TokenId> guesses);
  std::size_t mask_count() const { return mask_count_; }
  std::span<const std::uint32_t> mask_at(std::size_t guesses) const;

  // Goes on by one token. kInvalidArgument, and nothing changed, when it is not allowed here.
  Status accept(TokenId token);
  // Takes back the last tokens, the end of the answer too. kInvalidArgument when there are fewer.
  Status rollback(std::size_t count);
  // How many of the tokens could be accepted one after the other; changes nothing.
  Result<std::size_t> validate(std::span<const TokenId> tokens);
  // The tokens that must come next, cut as the tokenizer would, to be appended as one chunk without sampling. Not yet accepted.
  Result<std::vector<TokenId>> forced();

  // Copies for answers that fork here.
  Result<Matcher> clone() const;

  bool finished() const;     // a token that ends the answer was accepted
  Result<bool> may_end();    // an end token would be accepted here
  bool must_end() const;     // nothing else would
  std::size_t size() const;  // tokens accepted
  const Grammar& grammar() const { return *grammar_; }

 private:
  Matcher(std::shared_ptr<const Grammar> grammar, weir_matcher* native);
  Status append_mask();

  std::shared_ptr<const Grammar> grammar_;
  weir_matcher* native_;
  std::size_t size_ = 0;
  std::vector<std::uint32_t> masks_;
  std::size_t mask_count_ = 0;  // masks computed for the current position
};

}  // namespace weir::grammar
