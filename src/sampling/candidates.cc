// SPDX-License-Identifier: Apache-2.0
#include "sampling/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/exponential.h"
#include "sampling/scan.h"

namespace weir::sampling {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

bool likelier(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }
bool lower_id(const Candidate& a, const Candidate& b) { return a.id < b.id; }

float largest(std::span<const Candidate> candidates) {
  float top = -std::numeric_limits<float>::infinity();
  for (const Candidate& c : candidates) top = std::max(top, c.logit);
  return top;
}

}  // namespace

// Those at or above `lowest`, and above -inf.
void Candidates::assign_from(std::span<const float> logits, double lowest) {
  kept_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] >= lowest && logits[i] > kImpossible) kept_.push_back({logits[i], static_cast<TokenId>(i), 0});
}

void Candidates::assign(std::span<const float> logits) { assign_from(logits, kImpossible); }

// Candidates gather until there are twice as many as wanted (or 256 more); then the worse ones go, and later ones must exceed the
// worst that stayed: they have higher ids, so an equal one would lose the tie.
void Candidates::assign_top_k(std::span<const float> logits, std::int32_t k) {
  const auto wanted = static_cast<std::size_t>(k);
  if (k <= 0 || wanted >= logits.size()) return assign(logits);
  const std::size_t room = wanted + std::max<std::size_t>(wanted, 256);
  double mark = kImpossible;
  kept_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > mark)) continue;
    kept_.push_back({logits[i], static_cast<TokenId>(i), 0});
    if (kept_.size() < room) continue;
    keep_top_k(k);
    mark = kept_[wanted - 1].logit;
  }
  keep_top_k(k);
}

// All tokens with less than an equal share of what may be left out sum to less than that: none of them can be needed.
void Candidates::assign_top_p(std::span<const float> logits, double mass) {
  const LogitScan found = scan(logits);
  const double sum = sum_of_weights(logits, found.max);
  const double least = (1 - mass) * sum / static_cast<double>(logits.size());
  assign_from(logits, found.max + std::log(least) - 1e-6);  // the logarithm may have been rounded up
  for (Candidate& c : kept_) c.probability = std::exp(static_cast<double>(c.logit) - found.max) / sum;
  keep_mass(mass, likelier);
}

void Candidates::assign_min_p(std::span<const float> logits, double share) {
  const float top = scan(logits).max;
  assign_from(logits, std::min<double>(top, top + std::log(share)));
}

void Candidates::apply_temperature(float top, float temperature) {
  for (Candidate& c : kept_) c.logit = (c.logit - top) / temperature;
}

// Softmax over the kept ones, summed in order of ids.
void Candidates::normalize() {
  if (!std::is_sorted(kept_.begin(), kept_.end(), lower_id)) std::sort(kept_.begin(), kept_.end(), lower_id);
  const float top = largest(kept_);
  double sum = 0;
  for (Candidate& c : kept_) {
    c.probability = std::exp(static_cast<double>(c.logit) - top);
    sum += c.probability;
  }
  for (Candidate& c : kept_) c.probability /= sum;
}

// Afterwards the k-th is the worst of them.
void Candidates::keep_top_k(std::int32_t k) {
  const auto count = static_cast<std::size_t>(k);
  if (k <= 0 || count >= kept_.size()) return;
  std::nth_element(kept_.begin(), kept_.begin() + k - 1, kept_.end(), likelier);
  kept_.resize(count);
}

// Keeps the shortest prefix in the order of `before` whose probabilities reach `mass`; at least one token. Halving finds where it
// ends: each step orders one half before the other and adds up the first. Only the last few are sorted.
template <class Before>
void Candidates::keep_mass(double mass, Before before) {
  std::size_t begin = 0, end = kept_.size();
  double sum = 0;
  const auto at = [this](std::size_t i) { return kept_.begin() + static_cast<std::ptrdiff_t>(i); };
  while (end - begin > 32) {
    const std::size_t middle = begin + (end - begin) / 2;
    std::nth_element(at(begin), at(middle), at(end), before);
    double half = 0;
    for (std::size_t i = begin; i < middle; ++i) half += kept_[i].probability;
    if (sum + half >= mass) {
      end = middle;
    } else {
      sum += half;
      begin = middle;
    }
  }
  std::sort(at(begin), at(end), before);
  while (begin < end) {
    sum += kept_[begin++].probability;
    if (sum >= mass) break;
  }
  kept_.resize(begin);
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
  const double top_log = std::log(std::ranges::max(kept_, {}, &Candidate::logit).probability);
  const float top = largest(kept_);
  distance_.resize(static_cast<std::size_t>(kept_.back().id) + 1);
  double entropy = 0;
  for (const Candidate& c : kept_) {
    const double surprise = top - c.logit - top_log;  // -log(probability)
    distance_[static_cast<std::size_t>(c.id)] = surprise;
    entropy += c.probability * surprise;
  }
  for (const Candidate& c : kept_) {
    double& distance = distance_[static_cast<std::size_t>(c.id)];
    distance = std::abs(distance - entropy);
  }
  keep_mass(mass, [this](const Candidate& a, const Candidate& b) {
    const double da = distance_[static_cast<std::size_t>(a.id)], db = distance_[static_cast<std::size_t>(b.id)];
    return da != db ? da < db : a.id < b.id;
  });
}

void Candidates::keep_min_p(double share) {
  if (share <= 0 || kept_.empty()) return;
  const float top = largest(kept_);
  const double threshold = std::min<double>(top, top + std::log(share));
  std::erase_if(kept_, [threshold](const Candidate& c) { return c.logit < threshold; });
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

// Sums of blocks are kept, so that only the block that holds the answer is walked again.
TokenId Candidates::draw_from_all(std::span<const float> logits, float top, double u) {
  constexpr std::size_t kBlock = 512;
  block_sums_.clear();
  double total = 0;
  for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
    block_sums_.push_back(sum_of_weights(logits.subspan(begin, std::min(kBlock, logits.size() - begin)), top));
    total += block_sums_.back();
  }
  const double wanted = u * total;
  double sum = 0;
  std::size_t block = 0;
  while (block + 1 < block_sums_.size() && sum + block_sums_[block] <= wanted) sum += block_sums_[block++];
  for (std::size_t i = block * kBlock; i < logits.size(); ++i) {
    sum += static_cast<double>(exp_of_negative(logits[i] - top));
    if (wanted < sum) return static_cast<TokenId>(i);
  }
  // Rounding left the sum just below the total: the last token that has any probability.
  std::size_t last = logits.size() - 1;
  while (last > 0 && exp_of_negative(logits[last] - top) <= 0) --last;
  return static_cast<TokenId>(last);
}

}  // namespace weir::sampling
