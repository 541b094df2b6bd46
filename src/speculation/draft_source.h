// SPDX-License-Identifier: Apache-2.0
// The seam to whatever guesses: look-up in the sequence itself, a smaller model, early exits of the model's first layers. A source
// first says how good its guesses would be, then makes as many as pay. It sees the sequences whole each time: tokens that are new
// since the last call were accepted or sampled, and those that are gone were taken back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace weir::speculation {

struct SequenceView {
  SeqId sequence;
  std::span<const TokenId> tokens;  // prompt and answer as far as they are known
  std::int32_t most = 0;            // guesses that can be of use; 0: it waits for something else
  std::int32_t prompt = 0;          // the first so many tokens are the prompt
};

struct Offer {
  std::int32_t strength = 0;  // of the first guess, for Acceptance; each further one is stronger by one
  std::int32_t most = 0;      // guesses; 0 = none
};

struct Wish {
  std::size_t view = 0;     // in the call's views
  std::int32_t length = 0;  // guesses at most, more than 0
};

class DraftSource {
 public:
  virtual ~DraftSource() = default;

  // One offer for each view, into `offers` of the same size.
  virtual void offer(std::span<const SequenceView> views, std::span<Offer> offers) = 0;

  // Guesses for some of the views that were just offered for, in one batch: fills guesses[i] for wishes[i], with fewer than asked
  // for when the source has no more. An error costs the guesses only.
  virtual Status draft(std::span<const SequenceView> views, std::span<const Wish> wishes, std::span<std::vector<TokenId>> guesses) = 0;

  // Expected time of draft() for so many sequences and guesses each. A source whose guesses cost nothing is also asked for guesses
  // that will not run, to learn how good they are.
  virtual double seconds(std::int64_t sequences, std::int32_t length) const = 0;
  virtual bool free() const = 0;

  // The sequence has ended; also for those the source never saw.
  virtual void forget(SeqId sequence) = 0;
};

}  // namespace weir::speculation
