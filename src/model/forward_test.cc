// SPDX-License-Identifier: Apache-2.0
// What the pass promises beyond the numbers: logits of the wanted rows alone, caches of half precision, forks of a
// sequence, hidden states for the probe, and refusals instead of aborts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "model/arena.h"
#include "model/test_sequences.h"

namespace weir::model::testing {
namespace {

const std::vector<TokenId> kPrompt = {38, 30, 185, 137, 52, 188, 109, 208, 186, 48, 116, 226, 44, 20, 129, 58, 252, 7, 8, 9};

std::unique_ptr<Model> load_arch(const std::string& name) {
  auto model = load(weir::testing::data_path("arch/" + name), kernels::Activations::kF32);
  EXPECT_TRUE(model.has_value()) << model.error().message;
  return model ? std::move(*model) : nullptr;
}

TEST(Forward, ComputesTheWantedRowsAlone) {
  const auto model = load_arch("qwen3_moe");
  ASSERT_NE(model, nullptr);
  const auto all = TestSequences(*model, 1, 32).feed({{0, kPrompt}});
  ASSERT_TRUE(all.has_value());

  SequenceMemory memory(model->traits(), 2, 16, 0, DType::kF32);
  const std::vector<BlockId> blocks = {BlockId(0), BlockId(1)};
  const std::vector<kernels::SequenceSlice> slices = {{0, 20, 0, 0, blocks, StateSlot()}};
  const std::vector<std::int32_t> wanted = {3, 19};
  Row out(2 * 264);
  ASSERT_TRUE(model->forward({kPrompt, slices, wanted, {}}, memory, {out.data(), 2, 264}).has_value());
  EXPECT_EQ(Row(out.begin(), out.begin() + 264), (*all)[3]);
  EXPECT_EQ(Row(out.begin() + 264, out.end()), (*all)[19]);
}

TEST(Forward, TakesABatchWithoutRowsOrWithoutOutputs) {
  const auto model = load_arch("llama");
  ASSERT_NE(model, nullptr);
  SequenceMemory memory(model->traits(), 2, 16, 0, DType::kF32);
  EXPECT_TRUE(model->forward({}, memory, {}).has_value());
  const std::vector<BlockId> blocks = {BlockId(0), BlockId(1)};
  const std::vector<kernels::SequenceSlice> slices = {{0, 20, 0, 0, blocks, StateSlot()}};
  EXPECT_TRUE(model->forward({kPrompt, slices, {}, {}}, memory, {}).has_value());
}

TEST(Forward, RefusesABrokenBatch) {
  const auto model = load_arch("llama");
  ASSERT_NE(model, nullptr);
  auto rows = TestSequences(*model, 1, 16).feed({{0, {1, 2, 264}}});
  ASSERT_FALSE(rows.has_value());
  EXPECT_EQ(rows.error().code, ErrorCode::kInvalidArgument);
}

TEST(Forward, TellsThatTheCacheCouldNotBeHad) {
  const auto model = load_arch("llama");
  ASSERT_NE(model, nullptr);
  SequenceMemory memory(model->traits(), 2147483647, 1048576, 0, DType::kF32);
  const Status status = model->forward({}, memory, {});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kExhausted);
}

TEST(Forward, CachesOfHalfPrecisionStayClose) {
  for (const char* name : {"llama", "deepseek_v3"}) {
    SCOPED_TRACE(name);
    const auto model = load_arch(name);
    ASSERT_NE(model, nullptr);
    const auto last = [&](DType type) {
      auto rows = TestSequences(*model, 1, 32, 0, 16, type).feed_chunks(0, kPrompt, 1);
      EXPECT_TRUE(rows.has_value());
      return rows ? rows->back() : Row();
    };
    const Row exact = last(DType::kF32), f16 = last(DType::kF16), bf16 = last(DType::kBF16);
    const std::vector<double> expected(exact.begin(), exact.end());
    EXPECT_LT(distance(f16, expected), 0.05);
    EXPECT_LT(distance(bf16, expected), 0.5);
    EXPECT_GT(distance(bf16, expected), distance(f16, expected));
    EXPECT_GT(distance(f16, expected), 0);
  }
}

TEST(Forward, AForkContinuesLikeItsOrigin) {
  const auto model = load_arch("qwen3_next");  // attention and recurrent layers
  ASSERT_NE(model, nullptr);
  TestSequences run(*model, 2, 32);
  ASSERT_TRUE(run.feed({{0, kPrompt}}).has_value());
  run.fork(0, 1);
  const auto both = run.feed({{0, {5}}, {1, {5}}});
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ((*both)[0], (*both)[1]);
  const auto apart = run.feed({{0, {6}}, {1, {7}}});
  ASSERT_TRUE(apart.has_value());
  EXPECT_NE((*apart)[0], (*apart)[1]);
}

TEST(Forward, ShowsTheProbeEveryLayerInOrder) {
  const auto model = load_arch("llama");
  ASSERT_NE(model, nullptr);
  std::vector<std::int32_t> seen;
  model->set_probe([&](std::int32_t layer, kernels::ConstMatrix states) {
    seen.push_back(layer);
    EXPECT_EQ(states.rows, 20);
    EXPECT_EQ(states.cols, model->traits().hidden);
  });
  const auto probed = TestSequences(*model, 1, 32).feed({{0, kPrompt}});
  model->set_probe({});
  const auto layers = static_cast<std::int32_t>(model->traits().layers.size());
  EXPECT_EQ(seen.front(), -1);
  EXPECT_EQ(seen.back(), layers);
  EXPECT_EQ(static_cast<std::int32_t>(seen.size()), layers + 2);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_TRUE(probed.value() == TestSequences(*model, 1, 32).feed({{0, kPrompt}}).value());
}

TEST(Model, CountsBytesThatAStepReads) {
  const auto dense = load_arch("llama"), experts = load_arch("mixtral");
  ASSERT_TRUE(dense && experts);
  EXPECT_EQ(dense->active_weight_bytes(), dense->weight_bytes());
  std::uint64_t of_experts = 0;
  for (const LayerWeights& layer : experts->weights().layers) {
    for (const FfnWeights& e : layer.experts.experts) {
      of_experts += e.gate.weight->view.bytes.size() + e.up.weight->view.bytes.size() + e.down.weight->view.bytes.size();
    }
  }
  EXPECT_GT(of_experts, 0u);
  EXPECT_EQ(experts->weight_bytes() - experts->active_weight_bytes(), of_experts / 2);  // two of four run
}

TEST(Model, SaysThatADecoderHasNoPooler) {
  const auto model = load_arch("llama");
  ASSERT_NE(model, nullptr);
  Row x(static_cast<std::size_t>(model->traits().hidden));
  const auto width = static_cast<std::int64_t>(x.size());
  const auto status = model->pool({x.data(), 1, width}, {x.data(), 1, width});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
}

TEST(Arena, GivesTheSameMemoryAgainInASteadyState) {
  Arena arena;
  const auto pass = [&] {
    arena.reset();
    std::vector<const float*> places = {arena.matrix(3, 5).data};
    for (int layer = 0; layer < 3; ++layer) {
      const Arena::Scope scope(arena);
      places.push_back(arena.matrix(100, 7).data);
      places.push_back(reinterpret_cast<const float*>(arena.array<std::int64_t>(9).data()));
    }
    return places;
  };
  pass();
  const auto second = pass(), third = pass();
  EXPECT_EQ(second, third);
  EXPECT_EQ(second[1], second[3]) << "layers share their scratch";
  EXPECT_EQ(second[1] - second[0], 16) << "one block, in steps of 64 bytes";
}

TEST(Arena, KeepsLiveBuffersApart) {
  Arena arena;
  for (int round = 0; round < 2; ++round) {
    arena.reset();
    const auto a = arena.matrix(1, 1000), b = arena.matrix(1, 1000);
    std::ranges::fill(a.row_span(0), 1.0f);
    std::ranges::fill(b.row_span(0), 2.0f);
    EXPECT_THAT(a.row_span(0), ::testing::Each(1.0f));
    EXPECT_THAT(arena.array<std::int32_t>(50), ::testing::Each(0));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)  // sanitizers end the process instead
TEST(Arena, RecoversFromAPassThatWasTooLarge) {
  Arena arena;
  EXPECT_THROW(arena.matrix(std::int64_t{1} << 40, std::int64_t{1} << 12), std::bad_alloc);
  arena.reset();
  std::ranges::fill(arena.matrix(1, 1000).row_span(0), 1.0f);
}
#endif

}  // namespace
}  // namespace weir::model::testing
