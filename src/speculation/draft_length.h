// SPDX-License-Identifier: Apache-2.0
// How many guesses each sequence of a batch runs in the next step: the lengths with the most expected tokens per second. A guess
// counts when all before it were right, so its worth is the product of their probabilities, which falls along a draft; taking the
// worthiest first gives the best set of each size, and the sizes are compared by what a step of so many rows costs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "speculation/acceptance.h"
#include "speculation/draft_source.h"
#include "speculation/row_cost.h"

namespace weir::speculation {

struct Prospect {
  const Acceptance* acceptance = nullptr;
  Offer offer;
  const DraftSource* source = nullptr;
};

struct LengthLimits {
  std::int32_t per_sequence = 32;
  std::int32_t per_step = 64;
  double least_gain = 0.02;  // in tokens per second over plain decoding, or nothing is drafted
};

class LengthChooser {
 public:
  // One length for each prospect. `rows` run in any case, one of each stream among them; prospects are some of those streams.
  void choose(std::span<const Prospect> prospects, std::int64_t rows, std::int64_t streams, const RowCost& cost, const LengthLimits& limits,
              std::span<std::int32_t> lengths);

 private:
  struct Next {
    double worth = 0;  // probability that this guess and all before it are right
    std::size_t prospect = 0;
    std::int32_t length = 0;
  };
  static bool less(const Next& a, const Next& b);
  static double worth(const Prospect& prospect, double before, std::int32_t length);
  double drafting(std::span<const Prospect> prospects, std::span<const std::int32_t> lengths) const;

  std::vector<Next> heap_, taken_;  // kept between calls
};

// Tokens expected of a draft beside the one that comes anyway.
double expected_right(const Acceptance& acceptance, std::int32_t strength, std::int32_t length);

}  // namespace weir::speculation
