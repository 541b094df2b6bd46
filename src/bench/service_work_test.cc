// SPDX-License-Identifier: Apache-2.0
// What requests cost is counted by hand here, from the sizes of a small model.
#include "bench/service_work.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/testing.h"
#include "engine/loaded_model.h"

namespace weir::bench {
namespace {

using ::testing::HasSubstr;

kernels::Limits example_limits() {
  kernels::Limits limits;
  limits.threads = 2;
  limits.read = {10e9, "ordinary pages"};
  limits.arithmetic = {{kernels::Arithmetic::kF32, {100e9, "fma"}}};
  return limits;
}

struct Llama {
  engine::LoadedModel loaded = std::move(*engine::load_model(testing::data_path("arch/llama"), {.threads = 1}));
  ModelCost cost{*loaded.model, DType::kF32, kernels::Activations::kInt8, example_limits()};
  double weights = static_cast<double>(loaded.model->active_weight_bytes()), elements = 0;
  double position = cost.context_bytes(1), head = 0;
  Llama() {
    for (const auto& [type, count] : loaded.model->always_read_weights().elements) elements += static_cast<double>(count);
    head = static_cast<double>(loaded.model->weights().head.weight->out() * loaded.model->weights().head.weight->in());
  }
};

TEST(ModelCost, AttentionMeetsEachPositionWithEachHeadOfEachLayer) {
  const Llama llama;
  const auto& traits = llama.loaded.model->traits();
  const double heads = traits.attention.heads, dims = traits.attention.head_dim + traits.attention.value_dim;
  EXPECT_DOUBLE_EQ(llama.cost.attention_ops(7), 7 * 2 * heads * dims * static_cast<double>(traits.layers.size()));
}

TEST(ServedWork, IsCountedFromTokens) {
  const Llama llama;
  const ServedRequest requests[] = {{.prompt = 10, .cached = 0, .output = 4, .decode_s = 3}};
  const ServedWork work = served_work(llama.cost, requests, 20, 3, example_limits());
  const double products = 2 * (10 * (llama.elements - llama.head) + llama.head) + 3 * 2 * llama.elements;
  const double attention = 10 * llama.cost.attention_ops(5) + 3 * llama.cost.attention_ops(12);
  EXPECT_NEAR(work.flops, products + attention, 1);
  EXPECT_NEAR(work.bytes, llama.weights + 5 * llama.position + 3 * (llama.weights + 12 * llama.position), 1);
  EXPECT_DOUBLE_EQ(work.rows, 1);
  EXPECT_NEAR(work.mfu, work.flops / 100e9 / 20, 1e-15);
  EXPECT_NEAR(work.bandwidth_utilisation, work.bytes / 10e9 / 20, 1e-15);
}

TEST(ServedWork, StreamsShareTheWeightsOfASteps) {
  const Llama llama;
  const std::vector<ServedRequest> four(4, {.prompt = 1, .cached = 0, .output = 11, .decode_s = 5});
  const ServedWork together = served_work(llama.cost, four, 10, 5, example_limits());
  const ServedWork alone = served_work(llama.cost, four, 10, 20, example_limits());
  EXPECT_DOUBLE_EQ(together.rows, 4);
  EXPECT_DOUBLE_EQ(alone.rows, 1);
  EXPECT_DOUBLE_EQ(together.flops, alone.flops);
  EXPECT_NEAR(alone.bytes - together.bytes, 10 * llama.weights * 3 / 4, 1);
}

TEST(ServedWork, CachedTokensCostNothingButTheirContext) {
  const Llama llama;
  const ServedRequest whole[] = {{.prompt = 2000, .cached = 0, .output = 1}}, cached[] = {{.prompt = 2000, .cached = 1999, .output = 1}};
  const ServedWork a = served_work(llama.cost, whole, 1, 0, example_limits()), b = served_work(llama.cost, cached, 1, 0, example_limits());
  EXPECT_NEAR(b.flops, 2 * llama.elements + llama.cost.attention_ops(1999.5), 1);
  EXPECT_NEAR(b.bytes, llama.weights + 1999.5 * llama.position, 1);
  EXPECT_NEAR(a.bytes, 4 * (llama.weights + 1000 * llama.position), 1);  // 512 tokens at a time
  const ServedRequest odd[] = {{.prompt = 3, .cached = 9, .output = 0}};
  EXPECT_TRUE(std::isfinite(served_work(llama.cost, odd, 0, 0, example_limits()).flops));
  EXPECT_EQ(served_work(llama.cost, {}, 1, 1, example_limits()).flops, 0);
}

TEST(Limits, AreReadAsTheyAreWritten) {
  const kernels::Limits limits = example_limits();
  const auto read = parse_limits(boost::json::serialize(kernels::to_json(limits)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->threads, 2);
  EXPECT_DOUBLE_EQ(read->read.per_s, 10e9);
  EXPECT_DOUBLE_EQ(read->arithmetic.at(kernels::Arithmetic::kF32).per_s, 100e9);
  const auto nested = parse_limits(boost::json::serialize(json::Object{{"limits", kernels::to_json(limits)}}));
  ASSERT_TRUE(nested);
  EXPECT_DOUBLE_EQ(nested->read.per_s, 10e9);
}

TEST(Limits, RefuseWhatIsNoSpeed) {
  const auto message = [](std::string_view text) {
    const auto limits = parse_limits(text);
    return limits ? std::string() : limits.error().message;
  };
  EXPECT_THAT(message("{}"), HasSubstr("read_gb_per_s"));
  EXPECT_THAT(message("[]"), HasSubstr("object"));
  EXPECT_THAT(message(R"({"read_gb_per_s": 0, "peaks": {}})"), HasSubstr("no speed"));
  EXPECT_THAT(message(R"({"read_gb_per_s": 1e300, "peaks": {}})"), HasSubstr("no speed"));
  EXPECT_THAT(message(R"({"read_gb_per_s": 10})"), HasSubstr("peaks"));
  EXPECT_THAT(message(R"({"read_gb_per_s": 10, "peaks": {}})"), HasSubstr("fp32"));
  EXPECT_THAT(message(R"({"read_gb_per_s": 10, "threads": -1, "peaks": {}})"), HasSubstr("threads"));
  EXPECT_THAT(message(R"({"read_gb_per_s": 10, "peaks": {"fp32": {"gop_per_s": -1}}})"), HasSubstr("no speed"));
}

}  // namespace
}  // namespace weir::bench
