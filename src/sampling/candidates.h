// SPDX-License-Identifier: Apache-2.0
// The tokens that a draw may still take, and the filters that narrow them. Selection is partial: the likeliest tokens are
// found by nth_element in growing steps, never by sorting a whole vocabulary. Which tokens a filter keeps depends on values
// and ids alone (ties go to the lower id), so the draw does too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace weir::sampling {

struct Candidate {
  float logit;  // after penalties and temperature
  TokenId id;
  double probability;  // of the kept ones; set by normalize()
};

class Candidates {
 public:
  // All tokens whose logit is not -inf, in order of their ids.
  void assign(std::span<const float> logits);

  void keep_top_k(std::int32_t k);
  void keep_typical(double mass);
  void keep_top_p(double mass);
  void keep_min_p(double share);

  // The token at which the running sum of probabilities, in order of ids, passes u in [0, 1).
  TokenId draw(double u);

  std::span<const Candidate> kept() const { return kept_; }  // for tests; in no particular order
  bool empty() const { return kept_.empty(); }

 private:
  void normalize();
  template <class Before>
  void keep_mass(double mass, Before before);

  std::vector<Candidate> kept_;
};

}  // namespace weir::sampling
