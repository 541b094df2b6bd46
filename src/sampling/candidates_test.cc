// SPDX-License-Identifier: Apache-2.0
// The short ways through a vocabulary against the plain definitions: every filter written out over a full sort.
#include "sampling/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "sampling/sampler.h"

namespace weir::sampling {
namespace {

struct Entry {
  TokenId id;
  double logit;
  double p = 0;
};

void normalize(std::vector<Entry>& entries) {
  double sum = 0;
  for (const Entry& e : entries) sum += std::exp(e.logit);
  for (Entry& e : entries) e.p = std::exp(e.logit) / sum;
}

// Orders by `key` (then id) and keeps entries until their probabilities reach `mass`.
template <class Key>
void keep_until(std::vector<Entry>& entries, double mass, Key key) {
  std::sort(entries.begin(), entries.end(),
            [&](const Entry& a, const Entry& b) { return key(a) != key(b) ? key(a) < key(b) : a.id < b.id; });
  double sum = 0;
  std::size_t count = 0;
  while (count < entries.size()) {
    sum += entries[count++].p;
    if (sum >= mass) break;
  }
  entries.resize(count);
}

// temperature → top-k → typical → top-p → min-p, each on what the one before left.
std::vector<Entry> by_definition(std::span<const float> logits, const SamplingParams& params) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < logits.size(); ++i)
    entries.push_back({static_cast<TokenId>(i), static_cast<double>(logits[i]) / params.temperature});
  const auto unlikely = [](const Entry& e) { return -e.logit; };
  if (params.top_k > 0) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; });
    entries.resize(std::min(entries.size(), static_cast<std::size_t>(params.top_k)));
  }
  normalize(entries);
  if (params.typical_p < 1) {
    double entropy = 0;
    for (const Entry& e : entries) entropy -= e.p * std::log(e.p);
    keep_until(entries, params.typical_p, [entropy](const Entry& e) { return std::abs(-std::log(e.p) - entropy); });
    normalize(entries);
  }
  if (params.top_p < 1) {
    keep_until(entries, params.top_p, unlikely);
    normalize(entries);
  }
  double best = 0;
  for (const Entry& e : entries) best = std::max(best, e.p);
  std::erase_if(entries, [&](const Entry& e) { return e.p < params.min_p * best; });
  normalize(entries);
  return entries;
}

std::vector<float> random_logits(std::size_t size, unsigned seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(size);
  for (float& v : logits) v = normal(random);
  return logits;
}

TEST(Candidates, DrawsFollowTheDefinitionForEveryMixOfFilters) {
  const std::vector<SamplingParams> mixes = {
      {.temperature = 1.3f, .seed = 1},
      {.temperature = 0.7f, .top_k = 5, .seed = 2},
      {.temperature = 1, .top_p = 0.8f, .seed = 3},
      {.temperature = 2, .min_p = 0.2f, .seed = 4},
      {.temperature = 1, .typical_p = 0.7f, .seed = 5},
      {.temperature = 1.5f, .top_k = 9, .top_p = 0.9f, .min_p = 0.1f, .typical_p = 0.95f, .seed = 6},
      {.temperature = 1.5f, .top_p = 0.9f, .min_p = 0.1f, .seed = 7},
  };
  const std::vector<float> logits = random_logits(12, 8, 1.2f);
  for (const SamplingParams& params : mixes) {
    const std::vector<Entry> exact = by_definition(logits, params);
    Sampler sampler(params);
    constexpr int kDraws = 20'000;
    std::vector<int> counts(logits.size());
    for (std::uint64_t i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(sampler.sample(logits, i).value())];
    double chi2 = 0;
    int total = 0;
    for (const Entry& e : exact) {
      const int found = counts[static_cast<std::size_t>(e.id)];
      chi2 += std::pow(found - kDraws * e.p, 2) / (kDraws * e.p);
      total += found;
    }
    EXPECT_EQ(total, kDraws) << "seed " << *params.seed << ": a token was drawn that a filter should have dropped";
    // Chi-square beyond this has a probability of 1e-4 (Wilson and Hilferty's approximation); the draws are fixed by the seed.
    const double freedom = static_cast<double>(exact.size()) - 1, third = 2 / (9 * freedom);
    EXPECT_LT(chi2, freedom * std::pow(1 - third + 3.72 * std::sqrt(third), 3)) << "seed " << *params.seed;
  }
}

std::vector<TokenId> sorted_ids(std::span<const Candidate> kept) {
  std::vector<TokenId> ids;
  for (const Candidate& c : kept) ids.push_back(c.id);
  std::ranges::sort(ids);
  return ids;
}

TEST(Candidates, ShortWaysLeaveWhatAssigningAndFilteringLeaves) {
  for (unsigned round = 0; round < 30; ++round) {
    std::vector<float> logits = random_logits(5'000, round, 0.1f + 0.2f * static_cast<float>(round));
    for (float& v : logits) v = std::round(v * 16) / 16;  // many ties
    for (std::size_t i = 0; i < logits.size(); i += 7) logits[i] = -std::numeric_limits<float>::infinity();
    Candidates shorter, plain;
    for (const int k : {1, 2, 40, 300, 4'999, 6'000}) {
      shorter.assign_top_k(logits, k);
      plain.assign(logits);
      plain.keep_top_k(k);
      EXPECT_EQ(sorted_ids(shorter.kept()), sorted_ids(plain.kept())) << "top " << k;
    }
    for (const double p : {0.01, 0.5, 0.93, 0.999}) {
      shorter.assign_top_p(logits, p);
      plain.assign(logits);
      plain.keep_top_p(p);
      EXPECT_EQ(sorted_ids(shorter.kept()), sorted_ids(plain.kept())) << "mass " << p;
      shorter.assign_min_p(logits, p);
      plain.assign(logits);
      plain.keep_min_p(p);
      EXPECT_EQ(sorted_ids(shorter.kept()), sorted_ids(plain.kept())) << "share " << p;
    }
    plain.assign(logits);
    const float top = *std::ranges::max_element(logits);
    for (int i = 0; i < 50; ++i) {
      const double u = i / 50.0 + 0.001;
      EXPECT_EQ(shorter.draw_from_all(logits, top, u), plain.draw(u)) << "u " << u;
    }
  }
}

TEST(Candidates, TheEndsOfADrawAreTokensThatCanBe) {
  const float no = -std::numeric_limits<float>::infinity();
  std::vector<float> logits(2'000, no);
  logits[700] = logits[900] = 1;
  Candidates candidates;
  EXPECT_EQ(candidates.draw_from_all(logits, 1, 0), 700);
  EXPECT_EQ(candidates.draw_from_all(logits, 1, 0.5), 900);
  EXPECT_EQ(candidates.draw_from_all(logits, 1, std::nextafter(1.0, 0.0)), 900);
}

TEST(Sampler, AVocabularyOfAnyLengthIsScannedToItsEnd) {
  for (std::size_t size = 1; size < 70; ++size) {
    std::vector<float> logits(size, -5);
    logits[size - 1] = -1;
    Sampler sampler({});
    EXPECT_EQ(sampler.sample(logits, 0), static_cast<TokenId>(size - 1));
    logits[size - 1] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(sampler.sample(logits, 0)) << size;
  }
}

TEST(Sampler, PenaltiesAreThoseOfTheWholeHistory) {
  // Every token of a long prompt, in no order and twice, is divided by 2; the answer's tokens are counted one by one.
  SamplingParams params{.repetition_penalty = 2, .frequency_penalty = 0.25f};
  Sampler sampler(params);
  std::vector<TokenId> prompt;
  for (TokenId id = 99; id >= 50; --id) prompt.insert(prompt.end(), {id, id});
  sampler.see_prompt(prompt);
  std::vector<float> logits(100, 0);
  logits[60] = 8;  // 4 after the penalty
  logits[10] = 4.5;
  EXPECT_EQ(sampler.sample(logits, 0), 10);  // then 4.5 / 2 - 0.25 = 2
  EXPECT_EQ(sampler.sample(logits, 1), 60);  // then 8 / 2 - 0.25 = 3.75
  EXPECT_EQ(sampler.sample(logits, 2), 60);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(sampler.sample(logits, 3), 60) << i;  // 3.5, 3.25, … 2.25; then 2 = 2, and the lower id wins
  EXPECT_EQ(sampler.sample(logits, 3), 10);
}

}  // namespace
}  // namespace weir::sampling
