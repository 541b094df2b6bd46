// SPDX-License-Identifier: Apache-2.0
// Choosing experts: small cases worked out by hand.
#include <cmath>

#include "kernels/cpu_backend_impl.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

struct Routed {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
};

Routed route(const std::vector<float>& logits, std::int64_t rows, const RouterParams& params, int threads = 1) {
  CpuBackend backend(reference_table(), Activations::kInt8, threads);
  Routed routed{std::vector<std::int32_t>(static_cast<std::size_t>(rows * params.top_k)),
                std::vector<float>(static_cast<std::size_t>(rows * params.top_k))};
  backend.route({logits.data(), rows, static_cast<std::int64_t>(logits.size()) / rows}, params, routed.ids, routed.weights);
  return routed;
}

auto near(float x) { return FloatNear(x, 1e-6f); }

TEST(Route, SoftmaxOverAllExpertsBestFirst) {
  const std::vector<float> logits{std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)};
  const Routed plain = route(logits, 1, {.top_k = 2});
  EXPECT_THAT(plain.ids, ElementsAre(1, 3));
  EXPECT_THAT(plain.weights, ElementsAre(near(0.4f), near(0.3f)));
  const Routed normal = route(logits, 1, {.top_k = 2, .renormalize = true, .scale = 2});
  EXPECT_THAT(normal.weights, ElementsAre(near(8.0f / 7), near(6.0f / 7)));
}

TEST(Route, SoftmaxOfTheChosenOnly) {
  const Routed routed =
      route({std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)}, 1, {.top_k = 3, .score = RouterScore::kSoftmaxOfTop});
  EXPECT_THAT(routed.ids, ElementsAre(1, 3, 2));
  EXPECT_THAT(routed.weights, ElementsAre(near(4.0f / 9), near(3.0f / 9), near(2.0f / 9)));
}

TEST(Route, TiesGoToTheLowerExpert) { EXPECT_THAT(route({1, 2, 2, 2, 0}, 1, {.top_k = 2}).ids, ElementsAre(1, 2)); }

TEST(Route, CorrectionChoosesButDoesNotWeigh) {
  const std::vector<float> correction{0, 0.9f, 0, 0};
  const Routed routed = route({0, -2, 1, 2}, 1, {.top_k = 2, .score = RouterScore::kSigmoid, .correction = correction.data()});
  EXPECT_THAT(routed.ids, ElementsAre(1, 3));
  EXPECT_THAT(routed.weights, ElementsAre(near(1 / (1 + std::exp(2.0f))), near(1 / (1 + std::exp(-2.0f)))));
}

TEST(Route, OnlyExpertsOfTheBestGroupsAreChosen) {
  // Groups {0, 1}, {2, 3}, {4, 5}: the best expert wins by maximum, the best pair by sum.
  const std::vector<float> logits{3, -9, 2, 2, 1, 1};
  EXPECT_THAT(route(logits, 1, {.top_k = 2, .groups = 3, .top_groups = 1, .group_score = GroupScore::kMax}).ids, ElementsAre(0, 1));
  EXPECT_THAT(
      route(logits, 1, {.top_k = 2, .score = RouterScore::kSigmoid, .groups = 3, .top_groups = 1, .group_score = GroupScore::kTopTwoSum})
          .ids,
      ElementsAre(2, 3));
  EXPECT_THAT(route(logits, 1, {.top_k = 3, .groups = 3, .top_groups = 2}).ids, ElementsAre(0, 2, 3));
}

TEST(Route, NegativeCorrectedScoresStillLoseToNoExpertOfAnotherGroup) {
  const std::vector<float> correction{-5, -5, -9, -9};
  EXPECT_THAT(
      route({0, 0, 5, 5}, 1, {.top_k = 2, .score = RouterScore::kSigmoid, .correction = correction.data(), .groups = 2, .top_groups = 1})
          .ids,
      ElementsAre(0, 1));
}

TEST(Route, NotANumberStillGivesValidDistinctExperts) {
  const float nan = std::nanf("");
  EXPECT_THAT(route({nan, nan, nan}, 1, {.top_k = 2}).ids, ElementsAre(0, 1));
}

TEST(Route, RowsAreIndependentOfThreads) {
  const auto logits = test::random_floats(200 * 64, 3);
  const RouterParams params{
      .top_k = 6, .score = RouterScore::kSigmoid, .groups = 8, .top_groups = 3, .group_score = GroupScore::kTopTwoSum, .renormalize = true};
  const Routed one = route(logits, 200, params), three = route(logits, 200, params, 3);
  EXPECT_EQ(one.ids, three.ids);
  EXPECT_EQ(one.weights, three.weights);
}

}  // namespace
}  // namespace weir::kernels
