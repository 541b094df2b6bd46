// SPDX-License-Identifier: Apache-2.0
// Sampling: known answers of the generator, exact sets that filters keep, frequencies against exact probabilities, stops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "sampling/candidates.h"
#include "sampling/logprobs.h"
#include "sampling/random.h"
#include "sampling/sampler.h"
#include "sampling/stop_matcher.h"

namespace weir::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<TokenId> ids(const Candidates& candidates) {
  std::vector<TokenId> out;
  for (const Candidate& c : candidates.kept()) out.push_back(c.id);
  std::sort(out.begin(), out.end());
  return out;
}

Candidates of_probabilities(const std::vector<double>& p) {
  std::vector<float> logits;
  for (double v : p) logits.push_back(static_cast<float>(std::log(v)));
  Candidates candidates;
  candidates.assign(logits);
  return candidates;
}

// Known answers of the Random123 distribution (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, GivesTheKnownAnswers) {
  using Four = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DrawsAreUniformAndDependOnEachPartOfTheKey) {
  std::vector<int> bins(16);
  for (std::uint64_t i = 0; i < 16000; ++i) ++bins[static_cast<std::size_t>(uniform(7, 3, i) * 16)];
  double chi2 = 0;
  for (int n : bins) chi2 += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_LT(chi2, 37.7);  // 15 degrees of freedom, p = 0.001
  EXPECT_NE(uniform(7, 3, 0), uniform(8, 3, 0));
  EXPECT_NE(uniform(7, 3, 0), uniform(7, 4, 0));
  EXPECT_EQ(uniform(7, 3, 5), uniform(7, 3, 5));
}

TEST(Validate, NamesTheParameterAndRefusesWhatIsNotANumber) {
  EXPECT_TRUE(validate({}));
  const auto message = [](auto change) {
    SamplingParams params;
    change(params);
    const auto status = validate(params);
    return status ? std::string() : status.error().message;
  };
  EXPECT_NE(message([](auto& p) { p.temperature = -1; }).find("temperature"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.temperature = kNan; }).find("temperature"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.top_p = 0; }).find("top_p"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.top_k = -1; }).find("top_k"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.repetition_penalty = 0; }).find("repetition_penalty"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.logit_bias = {{1, 200.f}}; }).find("logit_bias"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.stop = {""}; }).find("stop"), std::string::npos);
}

TEST(Filters, KeepExactlyTheTokensOfTheirDefinition) {
  auto c = of_probabilities({0.1, 0.4, 0.2, 0.05, 0.25});
  c.keep_top_k(2);
  EXPECT_EQ(ids(c), (std::vector<TokenId>{1, 4}));

  c = of_probabilities({0.1, 0.4, 0.2, 0.05, 0.25});
  c.keep_top_p(0.6);
  EXPECT_EQ(ids(c), (std::vector<TokenId>{1, 4}));
  c = of_probabilities({0.1, 0.4, 0.2, 0.05, 0.25});
  c.keep_top_p(0.7);
  EXPECT_EQ(ids(c), (std::vector<TokenId>{1, 2, 4}));

  c = of_probabilities({0.1, 0.4, 0.2, 0.05, 0.25});
  c.keep_min_p(0.3);
  EXPECT_EQ(ids(c), (std::vector<TokenId>{1, 2, 4}));

  // Entropy 1.414: surprises are 2.30, 0.92, 1.61, 3.00, 1.39, so the most typical are 4, then 2, then 1.
  c = of_probabilities({0.1, 0.4, 0.2, 0.05, 0.25});
  c.keep_typical(0.3);
  EXPECT_EQ(ids(c), (std::vector<TokenId>{2, 4}));
}

TEST(Filters, BreakTiesByTheLowerIdAndAlwaysKeepOne) {
  Candidates c;
  const std::vector<float> equal(1000, 1.5f);
  c.assign(equal);
  c.keep_top_k(3);
  EXPECT_EQ(ids(c), (std::vector<TokenId>{0, 1, 2}));
  c.assign(equal);
  c.keep_top_p(1e-9);
  EXPECT_EQ(ids(c), (std::vector<TokenId>{0}));
  c.assign(equal);
  c.keep_min_p(1);
  EXPECT_EQ(c.kept().size(), 1000u);
}

TEST(Filters, PartialSelectionKeepsWhatAFullSortWould) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 2);
  for (int round = 0; round < 20; ++round) {
    std::vector<float> logits(3000);
    for (float& v : logits) v = std::round(normal(random) * 8) / 8;  // many ties
    std::vector<TokenId> order(logits.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](TokenId a, TokenId b) { return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)]; });
    const double sum = log_sum_exp(logits), mass = 0.05 + 0.045 * round;
    std::vector<TokenId> wanted;
    double reached = 0;
    for (TokenId id : order) {
      wanted.push_back(id);
      reached += std::exp(logits[static_cast<std::size_t>(id)] - sum);
      if (reached >= mass) break;
    }
    std::sort(wanted.begin(), wanted.end());
    Candidates c;
    c.assign(logits);
    c.keep_top_p(mass);
    EXPECT_EQ(ids(c), wanted) << "mass " << mass;
  }
}

TEST(Sampler, GreedyTakesTheLowestOfTheLargest) {
  Sampler sampler({});
  const std::vector<float> logits{0.5f, 2.f, -1.f, 2.f};
  EXPECT_EQ(sampler.sample(logits, 0), 1);
}

TEST(Sampler, RefusesBrokenLogitsAndEmptyChoices) {
  Sampler greedy({});
  EXPECT_FALSE(greedy.sample(std::vector<float>{0.f, kNan, 1.f}, 0));
  EXPECT_FALSE(greedy.sample(std::vector<float>{0.f, kInf, 1.f}, 0));
  EXPECT_FALSE(greedy.sample(std::vector<float>{-kInf, -kInf}, 0));
  EXPECT_EQ(greedy.sample(std::vector<float>{-kInf, -3.f}, 0), 1);
  Sampler warm({.temperature = 1});
  EXPECT_FALSE(warm.sample(std::vector<float>{0.f, kNan, 1.f}, 0));
  const std::uint32_t none[] = {0};
  EXPECT_FALSE(greedy.sample(std::vector<float>{0.f, 1.f}, 0, none));
}

TEST(Sampler, AMaskLeavesOnlyAllowedTokens) {
  Sampler sampler({.temperature = 1, .seed = 3});
  const std::vector<float> logits(40, 0.f);
  const std::uint32_t allowed[] = {1u << 5, 1u << 2};  // tokens 5 and 34
  for (std::uint64_t i = 0; i < 50; ++i) {
    const TokenId id = sampler.sample(logits, i, allowed).value();
    EXPECT_TRUE(id == 5 || id == 34) << id;
  }
}

TEST(Sampler, PenaltiesAndBiasDoWhatTheirFormulasSay) {
  // 3/2 < 2: the repeated token of the prompt loses. Negative logits are multiplied.
  Sampler repetition({.repetition_penalty = 2});
  repetition.see_prompt(std::vector<TokenId>{0});
  EXPECT_EQ(repetition.sample(std::vector<float>{3.f, 2.f}, 0), 1);
  Sampler negative({.repetition_penalty = 2});
  negative.see_prompt(std::vector<TokenId>{0});
  EXPECT_EQ(negative.sample(std::vector<float>{-1.f, -1.5f}, 0), 1);

  // Frequency: 0 leads by 1.2; each use costs 0.5, so the third draw changes.
  Sampler frequency({.frequency_penalty = 0.5f});
  const std::vector<float> lead{2.2f, 1.f};
  EXPECT_EQ(frequency.sample(lead, 0), 0);
  EXPECT_EQ(frequency.sample(lead, 1), 0);
  EXPECT_EQ(frequency.sample(lead, 2), 0);
  EXPECT_EQ(frequency.sample(lead, 3), 1);
  Sampler presence({.presence_penalty = 1.5f});
  EXPECT_EQ(presence.sample(lead, 0), 0);
  EXPECT_EQ(presence.sample(lead, 1), 1);

  Sampler bias({.logit_bias = {{1, 5.f}, {9999, 5.f}}});
  EXPECT_EQ(bias.sample(lead, 0), 1);
}

TEST(Sampler, DrawsByTheProbabilitiesThatItShould) {
  const std::vector<double> p{0.05, 0.3, 0.15, 0.1, 0.4};
  std::vector<float> logits;
  for (double v : p) logits.push_back(static_cast<float>(std::log(v) * 0.7));  // temperature 0.7 gives p back
  Sampler sampler({.temperature = 0.7f, .seed = 42});
  constexpr int kDraws = 20000;
  std::vector<int> counts(p.size());
  for (std::uint64_t i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(sampler.sample(logits, i).value())];
  double chi2 = 0;
  for (std::size_t i = 0; i < p.size(); ++i) chi2 += std::pow(counts[i] - kDraws * p[i], 2) / (kDraws * p[i]);
  EXPECT_LT(chi2, 18.5);  // 4 degrees of freedom, p = 0.001
}

TEST(Sampler, SameSeedSameDrawsWhateverHappenedBefore) {
  std::vector<float> logits(500);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(static_cast<float>(i));
  const SamplingParams params{.temperature = 1.2f, .top_p = 0.95f, .seed = 9};
  Sampler a(params), b(params), other(params, 1);
  std::vector<TokenId> first, second, third;
  for (std::uint64_t i = 0; i < 30; ++i) first.push_back(a.sample(logits, i).value());
  for (std::uint64_t i = 30; i-- > 0;) second.insert(second.begin(), b.sample(logits, i).value());
  for (std::uint64_t i = 0; i < 30; ++i) third.push_back(other.sample(logits, i).value());
  EXPECT_EQ(first, second);
  EXPECT_NE(first, third);
  EXPECT_NE(Sampler({.temperature = 1}).seed(), Sampler({.temperature = 1}).seed());
}

TEST(Sampler, ATinyTemperatureIsGreedyAndAHugeOneIsNearlyUniform) {
  const std::vector<float> logits{1.f, 1.01f, 0.5f};
  Sampler cold({.temperature = 1e-6f, .seed = 1});
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(cold.sample(logits, i), 1);
  Sampler hot({.temperature = 100, .seed = 1});
  std::vector<int> counts(3);
  for (std::uint64_t i = 0; i < 3000; ++i) ++counts[static_cast<std::size_t>(hot.sample(logits, i).value())];
  for (int n : counts) EXPECT_NEAR(n, 1000, 120);
}

// Asking of single tokens, then of all, draws as the mask does: frequencies over many positions against the exact probabilities.
TEST(Sampler, RefusedDrawsKeepTheDistributionOfTheMask) {
  const std::vector<float> logits{2.f, 1.f, 0.f, 1.5f, -1.f, 0.5f, 2.5f, -0.5f};
  const std::uint32_t mask = 0b10110110;  // 6 is the likeliest and not allowed, nor are 0 and 3
  const auto allowed = [&](TokenId id) { return (mask >> id & 1) != 0; };
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) total += allowed(static_cast<TokenId>(i)) ? std::exp(logits[i]) : 0;
  Sampler sampler({.temperature = 1, .seed = 17});
  ASSERT_TRUE(sampler.draws_freely());
  constexpr std::uint64_t kDraws = 60000;
  std::vector<double> seen(logits.size());
  for (std::uint64_t position = 0; position < kDraws; ++position) {
    std::vector<TokenId> refused;
    TokenId id = sampler.draw(logits, position).value();
    while (!allowed(id) && refused.size() < 2) {
      refused.push_back(id);
      id = sampler.draw(logits, position, refused).value();
    }
    if (!allowed(id)) id = sampler.redraw(logits, position, {&mask, 1}).value();
    ++seen[static_cast<std::size_t>(id)];
  }
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = allowed(static_cast<TokenId>(i)) ? std::exp(logits[i]) / total : 0;
    EXPECT_NEAR(seen[i] / kDraws, expected, 4 * std::sqrt(expected / kDraws)) << i;
  }
  EXPECT_FALSE(Sampler({.temperature = 1, .top_k = 3}).draws_freely());
  EXPECT_TRUE(Sampler({}).draws_freely());
}

TEST(Logprobs, AreThoseOfTheSoftmax) {
  const std::vector<float> logits{1.f, 3.f, 2.f, 3.f};
  const auto result = token_logprobs(logits, 2, 3);
  const double sum = std::log(std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0));
  EXPECT_NEAR(result.token.logprob, 2 - sum, 1e-6);
  EXPECT_EQ(result.rank, 3);
  ASSERT_EQ(result.top.size(), 3u);
  EXPECT_EQ(result.top[0].id, 1);
  EXPECT_EQ(result.top[1].id, 3);
  EXPECT_EQ(result.top[2].id, 2);
  EXPECT_NEAR(result.top[0].logprob, 3 - sum, 1e-6);
  EXPECT_TRUE(token_logprobs(logits, 0, 0).top.empty());
  EXPECT_EQ(token_logprobs(logits, 0, 99).top.size(), 4u);
}

// The definition, character by character: the first stop to be complete ends the text; of several, the one that starts first.
std::pair<std::string, bool> naive_stop(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t begin = std::string::npos;
    for (const auto& stop : stops)
      if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0) begin = std::min(begin, end - stop.size());
    if (begin != std::string::npos) return {text.substr(0, begin), true};
  }
  return {text, false};
}

TEST(StopMatcher, FindsStopsAcrossPiecesAndGivesBackWhatWasHeld) {
  StopMatcher matcher({"END", "\n\n"});
  EXPECT_EQ(matcher.push("The E"), "The ");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("T is not the EN"), "ENT is not the ");
  EXPECT_EQ(matcher.push("D of it"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.matched(), "END");
  EXPECT_EQ(matcher.push("more"), "");

  StopMatcher held({"###"});
  EXPECT_EQ(held.push("a ##"), "a ");
  EXPECT_EQ(held.finish(), "##");
  EXPECT_FALSE(held.stopped());
}

TEST(StopMatcher, DoesNotDependOnWhereThePiecesAreCut) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 24; ++i) text += "abé"[random() % 4];  // é is two bytes; halves may stand alone here
    std::vector<std::string> stops;
    for (unsigned i = 0; i <= random() % 3; ++i) {
      std::string stop;
      for (unsigned n = 0; n <= random() % 4; ++n) stop += "abé"[random() % 4];
      stops.push_back(stop);
    }
    StopMatcher matcher(stops);
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + random() % 5;
      out += matcher.push(text.substr(at, size));
      at += size;
    }
    out += matcher.finish();
    const auto [wanted, stopped] = naive_stop(text, stops);
    ASSERT_EQ(out, wanted) << text;
    ASSERT_EQ(matcher.stopped(), stopped);
  }
}

}  // namespace
}  // namespace weir::sampling
