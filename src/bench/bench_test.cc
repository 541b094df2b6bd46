// SPDX-License-Identifier: Apache-2.0
// Measuring: prompts, costs, options, figures and their JSON. Nothing here asserts how fast anything is.
#include <gmock/gmock.h>

#include <array>

#include "base/testing.h"
#include "bench/cold_start.h"
#include "bench/engine_speed.h"
#include "bench/kernel_speed.h"
#include "bench/kernel_timing.h"
#include "bench/machine.h"
#include "bench/model_cost.h"

namespace weir::bench {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

kernels::Limits example_limits() {
  kernels::Limits limits;
  limits.threads = 1;
  limits.read = {10e9, "ordinary pages"};
  limits.arithmetic = {{kernels::Arithmetic::kInt8, {400e9, "int8"}}, {kernels::Arithmetic::kF32, {100e9, "fma"}}};
  return limits;
}

// A small model of the project's own test data: 2 layers of a few hundred parameters.
engine::LoadedModel small_model(const char* family) {
  auto loaded = engine::load_model(testing::data_path(std::string("arch/") + family), {.threads = 1});
  EXPECT_TRUE(loaded) << loaded.error().message;
  return std::move(*loaded);
}

EngineSpeedOptions small_options() {
  EngineSpeedOptions options;
  options.prompt = 5;
  options.generate = 3;
  options.runs = 2;
  options.chunk = 4;  // prompts are cut, and sequences share steps
  options.batches = {1, 3};
  return options;
}

TEST(Cpuinfo, FindsTheValueOfAWholeKey) {
  const char* text = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: Some CPU @ 2.1 GHz: fast\nempty\t:\n";
  EXPECT_EQ(cpuinfo_value(text, "model name"), "Some CPU @ 2.1 GHz: fast");
  EXPECT_EQ(cpuinfo_value(text, "model"), "17");
  EXPECT_EQ(cpuinfo_value(text, "empty"), "");
  EXPECT_EQ(cpuinfo_value(text, "mod"), "");
}

TEST(Prompts, AreSeededAndOrdinary) {
  const engine::LoadedModel loaded = small_model("llama");
  const auto tokens = ordinary_tokens(loaded);
  ASSERT_FALSE(tokens.empty());
  EXPECT_THAT(tokens, Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(loaded.model->traits().vocab_size))));
  const auto prompt = random_prompt(tokens, 100, 1, 0);
  EXPECT_THAT(prompt, SizeIs(100));
  EXPECT_EQ(prompt, random_prompt(tokens, 100, 1, 0));
  EXPECT_NE(prompt, random_prompt(tokens, 100, 2, 0));
  EXPECT_NE(prompt, random_prompt(tokens, 100, 1, 1));
  EXPECT_THAT(random_prompt({7}, 3, 1, 1), Each(7));
}

TEST(ModelCost, CountsWeightsOnceAndRowsTimesTheirMultiplyAdds) {
  const engine::LoadedModel loaded = small_model("llama");
  const ModelCost cost(*loaded.model, DType::kF32, kernels::Activations::kInt8, example_limits());
  EXPECT_DOUBLE_EQ(cost.weight_bytes(1), static_cast<double>(loaded.model->active_weight_bytes()));
  EXPECT_DOUBLE_EQ(cost.weight_bytes(9), cost.weight_bytes(1));  // no experts
  const kernels::Work one = cost.step(1, 1), four = cost.step(4, 4), prompt = cost.step(4, 0);
  double elements = 0;
  for (const auto& [type, count] : loaded.model->always_read_weights().elements) elements += static_cast<double>(count);
  EXPECT_DOUBLE_EQ(one.ops.at(kernels::Arithmetic::kF32), 2 * elements);
  EXPECT_DOUBLE_EQ(four.ops.at(kernels::Arithmetic::kF32), 8 * elements);
  const auto& head = *loaded.model->weights().head.weight;
  EXPECT_DOUBLE_EQ(prompt.ops.at(kernels::Arithmetic::kF32), 8 * (elements - static_cast<double>(head.out() * head.in())));
  EXPECT_DOUBLE_EQ(four.bytes, one.bytes);
}

TEST(ModelCost, ExpertsAreReadAsRowsChooseThem) {
  const engine::LoadedModel loaded = small_model("mixtral");
  const ModelCost cost(*loaded.model, DType::kF32, kernels::Activations::kInt8, example_limits());
  const auto always = static_cast<double>(loaded.model->always_read_weights().bytes);
  const auto experts = static_cast<double>(loaded.model->expert_weights().bytes);
  const auto& traits = loaded.model->traits().experts;
  ASSERT_GT(experts, 0);
  EXPECT_NEAR(cost.weight_bytes(1), always + experts * traits.router.top_k / traits.experts, 1);
  EXPECT_LT(cost.weight_bytes(1), cost.weight_bytes(2));
  EXPECT_NEAR(cost.weight_bytes(1000), always + experts, 1);
}

TEST(ModelCost, WindowsBoundTheContextThatIsRead) {
  const engine::LoadedModel loaded = small_model("gemma2");  // every other layer sees a window
  const ModelCost cost(*loaded.model, DType::kF32, kernels::Activations::kInt8, example_limits());
  const double whole = cost.context_bytes(1), far = cost.context_bytes(10'000);
  EXPECT_LT(far, 9'999 * whole);
  EXPECT_GT(far, 10'000 * whole / 4);
}

TEST(EngineSpeed, RefusesWhatCannotBeMeasured) {
  const engine::LoadedModel loaded = small_model("llama");
  EngineSpeedOptions options = small_options();
  EXPECT_TRUE(check_options(loaded, options));
  options.batches = {};
  EXPECT_EQ(check_options(loaded, options).error().code, ErrorCode::kInvalidArgument);
  options.batches = {0};
  EXPECT_EQ(check_options(loaded, options).error().code, ErrorCode::kInvalidArgument);
  options = small_options();
  options.runs = 0;
  EXPECT_EQ(check_options(loaded, options).error().code, ErrorCode::kInvalidArgument);
  options = small_options();
  options.prompt = loaded.model->traits().max_context;
  ASSERT_GT(options.prompt, 0);
  const auto too_long = check_options(loaded, options);
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().message, HasSubstr("at most"));
  EXPECT_EQ(check_options(small_model("bert"), small_options()).error().code, ErrorCode::kUnsupported);
}

TEST(EngineSpeed, FiguresAreTokensOverTimes) {
  engine::LoadedModel loaded = small_model("llama");
  const EngineSpeedOptions options = small_options();
  const kernels::Limits limits = example_limits();
  for (const std::int32_t batch : options.batches) {
    const auto result = measure_engine(loaded, options, batch, limits, [] { return true; });
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_THAT(result->runs, SizeIs(2));
    const json::Object out = to_json(*result, limits);
    EXPECT_EQ(out.at("batch"), batch);
    EXPECT_EQ(out.at("prompt"), 5);
    EXPECT_EQ(out.at("generate"), 3);
    std::vector<double> prefill, decode;
    for (const EngineRun& run : result->runs) {
      prefill.push_back(batch * 5 / run.prefill_s);
      decode.push_back(batch * 3 / run.decode_s);
      EXPECT_LE(run.slowest_step_s, run.decode_s);
    }
    EXPECT_DOUBLE_EQ(out.at("prefill_tokens_per_s").as_double(), spread_of(prefill).median);
    EXPECT_DOUBLE_EQ(out.at("decode_tokens_per_s").as_double(), spread_of(decode).median);
    EXPECT_DOUBLE_EQ(out.at("bytes").as_double(), out.at("weight_bytes").as_double() + out.at("kv_bytes").as_double());
    const auto& share = out.at("share_of_limit").as_object();
    const double step_s = kernels::best_time(result->step_work, limits).seconds;
    EXPECT_DOUBLE_EQ(share.at("decode").as_double(), step_s * spread_of(decode).median / batch);
    EXPECT_EQ(out.at("runs").as_array().size(), 2u);
  }
}

TEST(EngineSpeed, DepthCountsInTheBytesThatAStepReads) {
  engine::LoadedModel loaded = small_model("llama");
  EngineSpeedOptions options = small_options();
  const auto shallow = measure_engine(loaded, options, 2, example_limits(), [] { return true; });
  options.depth = 20;
  const auto deep = measure_engine(loaded, options, 2, example_limits(), [] { return true; });
  ASSERT_TRUE(shallow && deep);
  const double per_token = static_cast<double>(model::SequenceMemory::bytes_per_token(loaded.model->traits(), options.kv_type));
  EXPECT_DOUBLE_EQ(deep->kv_bytes - shallow->kv_bytes, 2 * 20 * per_token);
  EXPECT_DOUBLE_EQ(shallow->kv_bytes, 2 * (5 + 2) * per_token);  // contexts of 6, 7 and 8 tokens: 7 on average
}

TEST(EngineSpeed, CanBeCancelled) {
  engine::LoadedModel loaded = small_model("llama");
  int steps = 0;
  const auto result = measure_engine(loaded, small_options(), 1, example_limits(), [&] { return ++steps < 4; });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
}

TEST(EngineSpeed, SmolLm2EndToEnd) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  auto loaded = engine::load_model(testing::smollm2_path(), {.threads = 2});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EngineSpeedOptions options = small_options();
  const auto result = measure_engine(*loaded, options, 2, example_limits(), [] { return true; });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(result->weight_bytes, 90e6);
  EXPECT_LT(result->weight_bytes, 100e6);
  EXPECT_EQ(result->prefilled_tokens(), 10);
  for (const EngineRun& run : result->runs) EXPECT_GT(run.prefill_s * run.decode_s, 0);
}

TEST(ColdStart, TimesProcessesUntilTheirLine) {
  const char* line = R"({"load_s": 0.5, "resident_bytes": 100, "peak_resident_bytes": 200})";
  const auto runs = measure_cold_starts({"/bin/sh", "-c", std::string("echo '") + line + "'; exec sleep 0"}, 2);
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_THAT(*runs, SizeIs(2));
  const json::Object out = to_json(*runs);
  EXPECT_DOUBLE_EQ(out.at("load_s").as_double(), 0.5);
  EXPECT_EQ(out.at("peak_resident_bytes"), 200u);
  EXPECT_GT(out.at("first_token_s").as_double(), 0);
  EXPECT_EQ(out.at("runs"), 2);
}

TEST(ColdStart, AProcessWithoutItsLineIsAnError) {
  for (const char* script : {"exit 0", "exit 3", "echo '{}'", "echo 'no JSON'", "echo '{\"load_s\": 1}'; exit 1", "kill -9 $$"})
    EXPECT_FALSE(measure_cold_starts({"/bin/sh", "-c", script}, 1)) << script;
  EXPECT_EQ(measure_cold_starts({"/no/such/program"}, 1).error().code, ErrorCode::kIo);
  EXPECT_EQ(measure_cold_starts({}, 1).error().code, ErrorCode::kInvalidArgument);
}

TEST(ColdStart, TheProcessesPartTakesOneToken) {
  engine::LoadedModel loaded = small_model("llama");
  const auto line = take_first_token(loaded, 0.25, 1);
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_DOUBLE_EQ(line->at("load_s").as_double(), 0.25);
  EXPECT_LT(line->at("token").as_int64(), loaded.model->traits().vocab_size);
}

TEST(RelativeError, IsInUnitsOfTheRightValues) {
  const std::array right = {3.0f, -3.0f}, close = {3.0f, -3.3f}, broken = {3.0f, NAN};
  EXPECT_DOUBLE_EQ(relative_error(right, right), 0);
  EXPECT_NEAR(relative_error(close, right), 0.1, 1e-6);
  EXPECT_EQ(relative_error(broken, right), INFINITY);
}

KernelOptions quick_kernels() {
  KernelOptions options;
  options.cpu = {.threads = 2};
  options.working_set = 1u << 20;
  options.seconds = 0.002;
  options.runs = 2;
  return options;
}

TEST(KernelSpeed, LinearLayersOfEveryTypeAreRight) {
  const kernels::Limits limits = example_limits();
  auto bench = KernelBench::create(quick_kernels(), limits);
  ASSERT_TRUE(bench) << bench.error().message;
  for (int t = 0; t <= static_cast<int>(DType::kMXFP4); ++t) {
    const LinearShape shape{.type = static_cast<DType>(t), .rows = 3, .out = 80, .in = 512};
    const auto result = bench->linear(shape);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(result->right()) << dtype_name(shape.type) << ": " << result->error;
    EXPECT_GE(result->working_set, 512u << 10);
    EXPECT_GT(result->reference_speedup, 0);
  }
}

TEST(KernelSpeed, AttentionIsRightForEveryTypeOfCache) {
  const kernels::Limits limits = example_limits();
  auto bench = KernelBench::create(quick_kernels(), limits);
  ASSERT_TRUE(bench) << bench.error().message;
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0})
    for (const std::int32_t rows : {1, 5}) {
      const auto result = bench->attention({.kv_type = type, .rows = rows, .depth = 70, .heads = 6, .kv_heads = 2, .head_dim = 32});
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_TRUE(result->right()) << dtype_name(type) << " " << rows << ": " << result->error;
    }
}

TEST(KernelSpeed, RefusesShapesThatAreNone) {
  const kernels::Limits limits = example_limits();
  auto bench = KernelBench::create(quick_kernels(), limits);
  ASSERT_TRUE(bench);
  EXPECT_FALSE(bench->linear({.type = DType::kQ4_K, .rows = 1, .out = 8, .in = 100}));
  EXPECT_FALSE(bench->linear({.type = DType::kI32, .rows = 1, .out = 8, .in = 64}));
  EXPECT_FALSE(bench->linear({.type = DType::kF32, .rows = 0, .out = 8, .in = 64}));
  EXPECT_FALSE(bench->linear({.type = DType::kF32, .rows = 1, .out = 1 << 24, .in = 1 << 24}));
  EXPECT_FALSE(bench->attention({.rows = 10, .depth = 5}));
  EXPECT_FALSE(bench->attention({.heads = 3, .kv_heads = 2}));
  EXPECT_FALSE(bench->attention({.kv_type = DType::kQ8_0, .head_dim = 40}));
  EXPECT_FALSE(bench->attention({.kv_type = DType::kQ4_0}));
}

}  // namespace
}  // namespace weir::bench
