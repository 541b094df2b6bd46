// SPDX-License-Identifier: Apache-2.0
// What a step is said to have read and computed is what follows from the shapes; its parts add up to its time.
#include "engine/metered_backend.h"

#include <gtest/gtest.h>

#include "base/testing.h"
#include "engine/loaded_model.h"
#include "engine/runner.h"

namespace weir::engine {
namespace {

using kernels::Activations;
using kernels::Arithmetic;

TEST(StepCost, EveryKindHasAName) {
  for (std::size_t i = 0; i < kOpKinds; ++i) EXPECT_STRNE(op_name(static_cast<OpKind>(i)), nullptr);
  EXPECT_STREQ(op_name(OpKind::kEmbedding), "embedding");
  EXPECT_STREQ(op_name(OpKind::kAttentionOut), "attention_out");
  EXPECT_STREQ(op_name(OpKind::kHead), "head");
  EXPECT_STREQ(op_name(OpKind::kRest), "rest");
}

kernels::Limits limits() {
  kernels::Limits limits;
  limits.read = {40e9, "huge pages"};
  limits.arithmetic[Arithmetic::kInt8] = {800e9, "vpdpbusd"};
  limits.arithmetic[Arithmetic::kF32] = {200e9, "vfmadd"};
  limits.arithmetic[Arithmetic::kBF16] = {400e9, "vdpbf16ps"};
  return limits;
}

OpCost cost_of(double seconds, double bytes, Operand operand, double multiply_adds) {
  OpCost cost{.seconds = seconds, .bytes = bytes, .calls = 1};
  cost.multiply_adds[static_cast<std::size_t>(operand)] = multiply_adds;
  return cost;
}

TEST(Bound, IsTheLongerOfReadingAndComputing) {
  // 80 MB take 2 ms at 40 GB/s; 80 M multiply-adds take 0.2 ms at 800 G operations.
  const Bound decode = bound_of(cost_of(2.5e-3, 80e6, Operand::kQuantised, 80e6), limits(), Activations::kInt8);
  EXPECT_STREQ(decode.by, "memory");
  EXPECT_NEAR(decode.memory_s, 2e-3, 1e-9);
  EXPECT_EQ(decode.compute_s, 0);
  EXPECT_NEAR(decode.rest_s, 0.5e-3, 1e-9);
  EXPECT_NEAR(decode.share_of_limit(), 0.8, 1e-9);
  const Bound prefill = bound_of(cost_of(200e-3, 80e6, Operand::kQuantised, 40e9), limits(), Activations::kInt8);
  EXPECT_STREQ(prefill.by, "int8");
  EXPECT_NEAR(prefill.compute_s, 100e-3, 1e-9);
  const Bound floats = bound_of(cost_of(500e-3, 80e6, Operand::kQuantised, 40e9), limits(), Activations::kF32);
  EXPECT_STREQ(floats.by, "fp32");
  EXPECT_NEAR(floats.compute_s, 400e-3, 1e-9);
  EXPECT_STREQ(bound_of(cost_of(10e-3, 80e6, Operand::kBF16, 80e6), limits(), Activations::kInt8).by, "rest");
}

TEST(Bound, OfAStepAddsUpItsKinds) {
  StepBreakdown step;
  step.steps = 1;
  step[OpKind::kDown] = cost_of(3e-3, 80e6, Operand::kQuantised, 80e6);  // 2 ms of reading
  step[OpKind::kAttention] = cost_of(4e-3, 1e6, Operand::kBF16, 200e6);  // 1 ms of computing
  step[OpKind::kRest].seconds = 0.5e-3;
  const Bound bound = bound_of(step, limits(), Activations::kInt8);
  EXPECT_NEAR(bound.seconds, 7.5e-3, 1e-9);
  EXPECT_NEAR(bound.memory_s, 2e-3, 1e-9);
  EXPECT_NEAR(bound.compute_s, 1e-3, 1e-9);
  EXPECT_NEAR(bound.rest_s, 4.5e-3, 1e-9);
  EXPECT_STREQ(bound.by, "rest");
  EXPECT_STREQ(bound_of(StepBreakdown(), limits(), Activations::kInt8).by, "rest");
}

TEST(StepBreakdown, AddsUpOverSteps) {
  StepBreakdown one;
  one.steps = 1;
  one[OpKind::kHead] = cost_of(1e-3, 10, Operand::kF32, 20);
  StepBreakdown all;
  all += one;
  all += one;
  EXPECT_EQ(all.steps, 2);
  EXPECT_EQ(all[OpKind::kHead].bytes, 20);
  EXPECT_EQ(all[OpKind::kHead].calls, 2);
  EXPECT_EQ(all.total().all_multiply_adds(), 40);
  EXPECT_DOUBLE_EQ(to_json(all).at("head").as_object().at("ms").to_number<double>(), 1.0);
  EXPECT_EQ(to_json(all).size(), 1u);
}

double sum(const StepBreakdown& step, std::initializer_list<OpKind> kinds, double OpCost::* what) {
  double all = 0;
  for (const OpKind kind : kinds) all += step[kind].*what;
  return all;
}

constexpr std::initializer_list<OpKind> kProducts = {OpKind::kQkv,  OpKind::kAttentionOut,      OpKind::kRouter, OpKind::kGateUp,
                                                     OpKind::kDown, OpKind::kRecurrentProducts, OpKind::kHead};

std::uint64_t elements(const model::WeightTotals& totals) {
  std::uint64_t all = 0;
  for (const auto& [type, count] : totals.elements) all += count;
  return all;
}

// Steps of a sequence: its prompt, then one row, each measured.
struct Measured {
  StepBreakdown prompt, row;
};

Measured measure(LoadedModel& loaded, std::int32_t length) {
  Runner runner(*loaded.model, {.max_tokens = 256, .kv_type = DType::kBF16});
  const SeqId sequence = runner.open(length).value();
  const std::vector<TokenId> prompt(static_cast<std::size_t>(length), 5);
  const auto step = [&](std::span<const TokenId> tokens) {
    const Piece pieces[] = {{sequence, tokens, Outputs::kLast}};
    loaded.meter->begin_step();
    EXPECT_TRUE(runner.step(pieces).has_value());
    return loaded.meter->end_step();
  };
  Measured measured;
  measured.prompt = step(prompt);
  measured.row = step(std::span(prompt).first(1));
  return measured;
}

TEST(MeteredBackend, ADecodeStepOfSmolLm2ReadsItsWeightsOnceAndItsContext) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  LoadedModel loaded = load_model(testing::smollm2_path(), {.threads = 2}).value();
  const Measured m = measure(loaded, 99);
  const model::WeightTotals weights = loaded.model->always_read_weights();

  // All matrices once; the norms' vectors, which weight_bytes() counts too, are not.
  const double norms = 61 * 576 * sizeof(float);
  EXPECT_EQ(sum(m.row, kProducts, &OpCost::bytes), static_cast<double>(loaded.model->weight_bytes()) - norms);
  EXPECT_EQ(m.row[OpKind::kOtherProducts].calls, 0);
  double multiply_adds = 0;
  for (const OpKind kind : kProducts) multiply_adds += m.row[kind].all_multiply_adds();
  EXPECT_EQ(multiply_adds, static_cast<double>(elements(weights)));
  // Of the prompt all rows go through the layers, one through the head.
  const double head = 49152.0 * 576, layers = static_cast<double>(elements(weights)) - head;
  EXPECT_EQ(m.prompt[OpKind::kHead].all_multiply_adds(), head);
  double of_layers = 0;
  for (const OpKind kind : kProducts) of_layers += kind == OpKind::kHead ? 0 : m.prompt[kind].all_multiply_adds();
  EXPECT_EQ(of_layers, 99 * layers);

  // 30 layers of 3 KV heads and 9 query heads of 64, bf16; the row at position 99 sees a hundred.
  EXPECT_EQ(m.row[OpKind::kAttention].bytes, 30.0 * 100 * 3 * 2 * 64 * 2);
  EXPECT_EQ(m.row[OpKind::kAttention].all_multiply_adds(), 30.0 * 100 * 9 * 2 * 64);
  EXPECT_EQ(m.prompt[OpKind::kAttention].all_multiply_adds(), 30.0 * (99 * 100 / 2) * 9 * 2 * 64);
  EXPECT_EQ(m.row[OpKind::kQkv].calls, 30);
  EXPECT_EQ(m.row[OpKind::kHead].calls, 1);
  EXPECT_EQ(m.row.steps, 1);
}

TEST(MeteredBackend, WindowsBoundWhatAttentionReads) {
  LoadedModel loaded = load_model(testing::data_path("arch/mistral"), {.threads = 1}).value();
  const model::Traits& traits = loaded.model->traits();
  const model::AttentionTraits& a = traits.attention;
  const Measured m = measure(loaded, 60);
  double bytes = 0, pairs = 0;
  for (const model::LayerTraits& layer : traits.layers) {
    ASSERT_GT(layer.window, 0);
    bytes += layer.window * a.kv_heads * (a.head_dim + a.value_dim) * 2.0;
    for (std::int32_t p = 0; p < 60; ++p) pairs += std::min(layer.window, p + 1);
  }
  EXPECT_EQ(m.row[OpKind::kAttention].bytes, bytes);
  EXPECT_EQ(m.prompt[OpKind::kAttention].all_multiply_adds(), pairs * a.heads * (a.head_dim + a.value_dim));
}

TEST(MeteredBackend, ExpertsAreCountedAsTheyAreChosen) {
  LoadedModel loaded = load_model(testing::data_path("arch/mixtral"), {.threads = 1}).value();
  const Measured m = measure(loaded, 20);
  const double experts = static_cast<double>(elements(loaded.model->expert_weights()));
  const model::ExpertTraits& t = loaded.model->traits().experts;
  const double chosen = experts / t.experts * t.router.top_k;
  EXPECT_EQ(m.row[OpKind::kGateUp].all_multiply_adds() + m.row[OpKind::kDown].all_multiply_adds(), chosen);
  EXPECT_EQ(m.prompt[OpKind::kGateUp].all_multiply_adds() + m.prompt[OpKind::kDown].all_multiply_adds(), 20 * chosen);
  EXPECT_GT(m.row[OpKind::kRouter].calls, 0);
}

TEST(MeteredBackend, EveryProductOfEveryArchitectureHasARole) {
  for (const char* name : {"deepseek_v3", "gpt_oss", "mamba2", "qwen3_next", "lfm2", "falcon", "gpt2", "qwen2_moe"}) {
    SCOPED_TRACE(name);
    LoadedModel loaded = load_model(testing::data_path(std::string("arch/") + name), {.threads = 1}).value();
    const Measured m = measure(loaded, 12);
    EXPECT_EQ(m.row[OpKind::kOtherProducts].calls, 0);
    EXPECT_EQ(m.row[OpKind::kHead].calls, 1);
    EXPECT_EQ(m.row[OpKind::kRecurrent].bytes > 0, loaded.model->traits().has_state());
  }
}

TEST(MeteredBackend, PartsAddUpAndNothingIsNotedOutsideOfAStep) {
  LoadedModel loaded = load_model(testing::data_path("arch/llama"), {.threads = 1}).value();
  const Measured m = measure(loaded, 8);
  for (const OpCost& op : m.row.ops) EXPECT_GE(op.seconds, 0);
  EXPECT_GT(m.row.total().seconds, 0);
  loaded.meter->begin_step();
  EXPECT_EQ(loaded.meter->end_step().total().calls, 0);
  Runner runner(*loaded.model, {.max_tokens = 64});
  const SeqId sequence = runner.open().value();
  const TokenId token = 3;
  const Piece pieces[] = {{sequence, {&token, 1}, Outputs::kLast}};
  ASSERT_TRUE(runner.step(pieces).has_value());
  EXPECT_EQ(loaded.meter->end_step().total().calls, 0);
}

}  // namespace
}  // namespace weir::engine
