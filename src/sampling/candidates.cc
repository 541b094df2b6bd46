// SPDX-License-Identifier: Apache-2.0
#include "sampling/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::sampling {
namespace {

bool likelier(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }
bool lower_id(const Candidate& a, const Candidate& b) { return a.id < b.id; }

}  // namespace

void Candidates::assign(std::span<const float> logits) {
  kept_.clear();
  kept_.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -std::numeric_limits<float>::infinity()) kept_.push_back({logits[i], static_cast<TokenId>(i), 0});
}

// Softmax over the kept ones, summed in order of ids.
void Candidates::normalize() {
  if (!std::is_sorted(kept_.begin(), kept_.end(), lower_id)) std::sort(kept_.begin(), kept_.end(), lower_id);
  float top = -std::numeric_limits<float>::infinity();
  for (const Candidate& c : kept_) top = std::max(top, c.logit);
  double sum = 0;
  for (Candidate& c : kept_) {
    c.probability = std::exp(static_cast<double>(c.logit) - top);
    sum += c.probability;
  }
  for (Candidate& c : kept_) c.probability /= sum;
}

void Candidates::keep_top_k(std::int32_t k) {
  const auto count = static_cast<std::size_t>(k);
  if (k <= 0 || count >= kept_.size()) return;
  std::nth_element(kept_.begin(), kept_.begin() + k, kept_.end(), likelier);
  kept_.resize(count);
}

// Keeps the shortest prefix in the order of `before` whose probabilities reach `mass`; at least one token.
template <class Before>
void Candidates::keep_mass(double mass, Before before) {
  double sum = 0;
  std::size_t done = 0;
  for (std::size_t step = 128; done < kept_.size(); step *= 4) {
    const std::size_t end = std::min(kept_.size(), done + step);
    const auto first = kept_.begin() + static_cast<std::ptrdiff_t>(done), last = kept_.begin() + static_cast<std::ptrdiff_t>(end);
    if (last != kept_.end()) std::nth_element(first, last, kept_.end(), before);
    std::sort(first, last, before);
    for (; done < end; ++done) {
      sum += kept_[done].probability;
      if (sum >= mass) {
        kept_.resize(done + 1);
        return;
      }
    }
  }
}

void Candidates::keep_top_p(double mass) {
  if (mass >= 1 || kept_.empty()) return;
  normalize();
  keep_mass(mass, likelier);
}

// Typical tokens are those whose surprise is near the distribution's entropy.
void Candidates::keep_typical(double mass) {
  if (mass >= 1 || kept_.empty()) return;
  normalize();
  double entropy = 0;
  for (const Candidate& c : kept_)
    if (c.probability > 0) entropy -= c.probability * std::log(c.probability);
  const auto distance = [entropy](const Candidate& c) {
    return c.probability > 0 ? std::abs(-std::log(c.probability) - entropy) : std::numeric_limits<double>::infinity();
  };
  keep_mass(mass, [&](const Candidate& a, const Candidate& b) {
    const double da = distance(a), db = distance(b);
    return da != db ? da < db : a.id < b.id;
  });
}

void Candidates::keep_min_p(double share) {
  if (share <= 0 || kept_.empty()) return;
  float top = -std::numeric_limits<float>::infinity();
  for (const Candidate& c : kept_) top = std::max(top, c.logit);
  const double threshold = top + std::log(share);
  std::erase_if(kept_, [&](const Candidate& c) { return c.logit < threshold && c.logit < top; });
}

TokenId Candidates::draw(double u) {
  normalize();
  double sum = 0;
  for (const Candidate& c : kept_) {
    sum += c.probability;
    if (u < sum) return c.id;
  }
  // Rounding left the sum just below 1: the last token that has any probability.
  for (std::size_t i = kept_.size(); i-- > 0;)
    if (kept_[i].probability > 0) return kept_[i].id;
  return kept_.back().id;
}

}  // namespace weir::sampling
