// SPDX-License-Identifier: Apache-2.0
// The tokens that a draw may still take, and the filters that narrow them. Nothing sorts a whole vocabulary: the likeliest are
// gathered in one pass, sets of a given mass found by halving. Which tokens a filter keeps depends on values and ids alone (ties
// go to the lower id), so the draw does too.
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
  // What assign() and the filter of that name would leave, without holding the whole vocabulary.
  void assign_top_k(std::span<const float> logits, std::int32_t k);
  void assign_top_p(std::span<const float> logits, double mass);
  void assign_min_p(std::span<const float> logits, double share);

  // (logit - top) / temperature for each.
  void apply_temperature(float top, float temperature);

  void keep_top_k(std::int32_t k);
  void keep_typical(double mass);
  void keep_top_p(double mass);
  void keep_min_p(double share);

  // The token at which the running sum of probabilities, in order of ids, passes u in [0, 1).
  TokenId draw(double u);
  // The same over all tokens, without making candidates of them. `top` is the largest logit, above -inf.
  TokenId draw_from_all(std::span<const float> logits, float top, double u);

  std::span<const Candidate> kept() const { return kept_; }  // for tests; in no particular order
  bool empty() const { return kept_.empty(); }

 private:
  void assign_from(std::span<const float> logits, double lowest);
  void normalize();
  template <class Before>
  void keep_mass(double mass, Before before);

  std::vector<Candidate> kept_;
  std::vector<double> distance_;    // of typical sampling, by id
  std::vector<double> block_sums_;  // of draw_from_all
};

}  // namespace weir::sampling
