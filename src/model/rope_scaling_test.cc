// SPDX-License-Identifier: Apache-2.0
// Frequencies against values computed in Python from transformers' formulas (modeling_rope_utils), in double.
#include "model/rope_scaling.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "model/rope_config.h"

namespace weir::model {
namespace {

using ::testing::HasSubstr;

void expect_equal(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-13 * expected[i]) << "frequency " << i;
}

RopeTraits resolved(const RopeSpec& spec) {
  auto rope = resolve_rope(spec);
  EXPECT_TRUE(rope) << rope.error().message;
  return rope ? std::move(*rope) : RopeTraits{};
}

TEST(RopeScalingTest, PlainFrequenciesFallFromOne) {
  const RopeTraits rope = resolved({.rotary_dim = 8});
  expect_equal(rope.inverse_frequencies, {1, 0.1, 0.01, 0.001});
  EXPECT_EQ(rope.magnitude, 1);
  EXPECT_TRUE(rope.long_frequencies.empty());
}

TEST(RopeScalingTest, LinearDividesAll) {
  expect_equal(resolved({.rotary_dim = 8, .scaling = RopeScaling::kLinear, .factor = 4}).inverse_frequencies,
               {0.25, 0.025, 0.0025, 0.00025});
}

TEST(RopeScalingTest, Llama3HasThreeZones) {
  const RopeTraits rope =
      resolved({.rotary_dim = 16, .theta = 500000, .scaling = RopeScaling::kLlama3, .factor = 8, .original_context = 64});
  expect_equal(rope.inverse_frequencies, {1, 0.0794030091792082, 0.00470075386635799, 0.000911583092152139, 0.000176776695296637,
                                          3.42810219595259e-05, 6.64786987118124e-06, 1.28917317215156e-06});
  EXPECT_EQ(rope.magnitude, 1);
}

TEST(RopeScalingTest, Llama3OfTheRealModel) {
  const auto f = resolved({.rotary_dim = 128, .theta = 500000, .scaling = RopeScaling::kLlama3, .factor = 32, .original_context = 8192})
                     .inverse_frequencies;
  expect_equal(
      {f.at(0), f.at(20), f.at(28), f.at(32), f.at(35), f.at(40), f.at(63)},
      {1, 0.0165604400809944, 0.00321144599475259, 0.000429556796559368, 2.38905308849117e-05, 8.57025548988148e-06, 7.67231497228628e-08});
}

TEST(RopeScalingTest, YarnBlendsAndScalesUp) {
  const RopeTraits rope = resolved({.rotary_dim = 10, .scaling = RopeScaling::kYarn, .factor = 4, .original_context = 32});
  expect_equal(rope.inverse_frequencies, {1, 0.0396223298115278, 0.00627971607877395, 0.000995267926383743, 0.000157739336120048});
  EXPECT_NEAR(rope.magnitude, 1.13862943611199, 1e-13);
}

TEST(RopeScalingTest, YarnRampIsRoundedOnlyWhenTruncated) {
  RopeSpec spec{.rotary_dim = 16, .theta = 150000, .scaling = RopeScaling::kYarn, .factor = 8, .original_context = 64, .beta_fast = 8};
  expect_equal(resolved(spec).inverse_frequencies, {1, 0.126797625114115, 0.00635165935193268, 0.00143177834908253, 0.000322748612183951,
                                                    7.27533467267582e-05, 1.63999139272119e-05, 3.69683580097132e-06});
  spec.truncate = false;
  EXPECT_NEAR(resolved(spec).inverse_frequencies.at(1), 0.107019538914393, 1e-14);
}

TEST(RopeScalingTest, YarnMagnitudeFollowsWhatIsGiven) {
  RopeSpec spec{
      .rotary_dim = 8, .scaling = RopeScaling::kYarn, .factor = 40, .original_context = 4096, .mscale = 0.8, .mscale_all_dim = 0.3};
  EXPECT_NEAR(resolved(spec).magnitude, 1.16606604415627, 1e-13);
  spec.mscale_all_dim = 0.8;
  EXPECT_EQ(resolved(spec).magnitude, 1);
  spec.attention_factor = 1.5;
  EXPECT_EQ(resolved(spec).magnitude, 1.5);
}

TEST(RopeScalingTest, LongRopeKeepsBothSets) {
  const RopeTraits rope = resolved({.rotary_dim = 12,
                                    .scaling = RopeScaling::kLong,
                                    .factor = 128.0 / 40,
                                    .original_context = 40,
                                    .short_factors = {1.0, 1.1, 1.2, 1.3, 1.5, 1.7},
                                    .long_factors = {1.0, 1.6, 2.5, 4.0, 6.0, 9.0}});
  expect_equal(rope.inverse_frequencies,
               {1, 0.195857699093808, 0.0386799069467732, 0.00769230769230769, 0.00143628979335459, 0.00027303463727134});
  expect_equal(rope.long_frequencies, {1, 0.134652168126993, 0.0185663553344511, 0.0025, 0.000359072448338647, 5.15732092623642e-05});
  EXPECT_EQ(rope.long_above, 40);
  EXPECT_NEAR(rope.magnitude, 1.14687086150262, 1e-13);
  EXPECT_EQ(rope.long_magnitude, rope.magnitude);
}

struct Refused {
  const char* name;
  RopeSpec spec;
  const char* message;
};

TEST(RopeScalingTest, NonsenseIsAnErrorThatNamesIt) {
  const double inf = std::numeric_limits<double>::infinity();
  const Refused cases[] = {
      {"no dimensions", {.rotary_dim = 0}, "0 rotated dimensions"},
      {"an odd dimension", {.rotary_dim = 7}, "7 rotated dimensions"},
      {"theta of zero", {.rotary_dim = 8, .theta = 0}, "theta"},
      {"theta of NaN", {.rotary_dim = 8, .theta = std::nan("")}, "theta"},
      {"a negative factor", {.rotary_dim = 8, .scaling = RopeScaling::kLinear, .factor = -1}, "factor"},
      {"yarn without a context", {.rotary_dim = 8, .scaling = RopeScaling::kYarn, .factor = 2}, "original context"},
      {"yarn with theta 1", {.rotary_dim = 8, .theta = 1, .scaling = RopeScaling::kYarn, .factor = 2, .original_context = 64}, "theta"},
      {"llama3 without a middle zone",
       {.rotary_dim = 8, .scaling = RopeScaling::kLlama3, .factor = 2, .original_context = 64, .low_freq_factor = 4},
       "high_freq_factor"},
      {"too few factors",
       {.rotary_dim = 8, .scaling = RopeScaling::kLong, .original_context = 64, .short_factors = {1, 2}},
       "short_factor"},
      {"an infinite divisor", {.rotary_dim = 4, .divisors = {1, inf}}, "frequency factors"},
  };
  for (const Refused& c : cases) {
    const auto rope = resolve_rope(c.spec);
    ASSERT_FALSE(rope) << c.name;
    EXPECT_EQ(rope.error().code, ErrorCode::kCorrupt) << c.name;
    EXPECT_THAT(rope.error().message, HasSubstr(c.message)) << c.name;
  }
}

RopeSpec read(const char* text, std::int32_t head_dim, std::int32_t context, const RopeDefaults& defaults = {}) {
  Config config(json::parse(text, "test").value().as_object());
  RopeSpec spec = read_rope(config, head_dim, context, defaults);
  EXPECT_TRUE(config.status()) << config.status().error().message;
  return spec;
}

TEST(RopeConfigTest, OldAndNewSpellingsMeanTheSame) {
  const RopeSpec old_style = read(R"({"rope_theta": 5e5, "rope_scaling": {"type": "yarn", "factor": 4.0, "beta_fast": 8}})", 16, 64);
  const RopeSpec new_style =
      read(R"({"rope_parameters": {"rope_type": "yarn", "rope_theta": 5e5, "factor": 4.0, "beta_fast": 8}})", 16, 64);
  for (const RopeSpec& spec : {old_style, new_style}) {
    EXPECT_EQ(spec.theta, 5e5);
    EXPECT_EQ(spec.scaling, RopeScaling::kYarn);
    EXPECT_EQ(spec.factor, 4);
    EXPECT_EQ(spec.beta_fast, 8);
    EXPECT_EQ(spec.beta_slow, 1);
    EXPECT_EQ(spec.original_context, 64);
    EXPECT_EQ(spec.rotary_dim, 16);
    EXPECT_TRUE(spec.truncate);
  }
}

TEST(RopeConfigTest, EachKindOfLayerHasItsOwnParameters) {
  const char* text = R"({"rope_parameters": {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}})";
  const RopeSpec full = read(text, 8, 64, {.layer_type = "full_attention"}),
                 sliding = read(text, 8, 64, {.layer_type = "sliding_attention"});
  EXPECT_EQ(full.theta, 1e6);
  EXPECT_EQ(full.scaling, RopeScaling::kLinear);
  EXPECT_EQ(sliding.theta, 1e4);
  EXPECT_EQ(sliding.scaling, RopeScaling::kNone);
}

TEST(RopeConfigTest, PartOfTheHeadRotates) {
  EXPECT_EQ(read(R"({"partial_rotary_factor": 0.75})", 128, 64).rotary_dim, 96);
  EXPECT_EQ(read(R"({"rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 1e4}})", 16, 64).rotary_dim, 8);
  EXPECT_EQ(read(R"({"rotary_pct": 0.34})", 12, 64).rotary_dim, 4);
  EXPECT_EQ(read("{}", 16, 64, {.partial = 0.25}).rotary_dim, 4);
}

TEST(RopeConfigTest, TheOuterOriginalContextCounts) {
  const RopeSpec spec = read(R"({"original_max_position_embeddings": 40, "rope_scaling": {"type": "longrope", "short_factor": [1, 1],
    "long_factor": [2, 3], "original_max_position_embeddings": 64}})",
                             4, 128);
  EXPECT_EQ(spec.original_context, 40);
  EXPECT_EQ(spec.factor, 128.0 / 40);
}

TEST(RopeConfigTest, DynamicIsPlainUpToTheTrainedContext) {
  const RopeSpec spec = read(R"({"rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "factor": 4.0}})", 8, 128);
  EXPECT_EQ(spec.only_up_to, 128);
  Config config{json::Object{}};
  Traits traits;
  EXPECT_EQ(add_rope(config, traits, spec), 0);
  EXPECT_EQ(traits.max_positions, 128);
  expect_equal(traits.ropes.at(0).inverse_frequencies, {1, 0.1, 0.01, 0.001});
}

TEST(RopeConfigTest, UnknownScalingsAreUnsupported) {
  for (const char* type : {"proportional", "ntk", "xpos"}) {
    Config config(
        json::parse(fmt::format(R"({{"rope_scaling": {{"rope_type": "{}", "factor": 2.0}}}})", type), "test").value().as_object());
    read_rope(config, 16, 64);
    ASSERT_FALSE(config.status()) << type;
    EXPECT_EQ(config.status().error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(config.status().error().message, HasSubstr(type));
  }
}

}  // namespace
}  // namespace weir::model
