// SPDX-License-Identifier: Apache-2.0
// The probes of the machine: that they run everywhere, choose sensible sizes and give figures. How large those are is not a test.
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>

#include "base/testing.h"
#include "kernels/limits/machine_limits.h"
#include "kernels/limits/roofline.h"
#include "kernels/limits/together.h"

namespace weir::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text << "\n";
}

TEST(CacheSizes, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_cache_size("32768K"), 32u << 20);
  EXPECT_EQ(parse_cache_size("1M"), 1u << 20);
  EXPECT_EQ(parse_cache_size("512"), 512u);
  for (const char* bad : {"", "K", "12X", "-4K", "99999999999999999999K", "99999999999999999G"})
    EXPECT_EQ(parse_cache_size(bad), std::nullopt) << bad;
}

TEST(CacheSizes, ComeFromTheSystemsFiles) {
  const testing::TemporaryFolder folder;
  const char* levels[] = {"1", "1", "2", "3"};
  const char* types[] = {"Data", "Instruction", "Unified", "Unified"};
  const char* sizes[] = {"48K", "32K", "2048K", "260M"};
  for (int i = 0; i < 4; ++i) {
    const auto entry = folder.path() / ("index" + std::to_string(i));
    write(entry / "level", levels[i]);
    write(entry / "type", types[i]);
    write(entry / "size", sizes[i]);
    write(entry / "shared_cpu_list", i == 3 ? "0-55" : "0");
  }
  const CacheSizes caches = read_cache_sizes(folder.path());
  EXPECT_TRUE(caches.known);
  EXPECT_EQ(caches.l1, 48u << 10);
  EXPECT_EQ(caches.l2, 2u << 20);
  EXPECT_EQ(caches.l3, 260u << 20);
  EXPECT_EQ(caches.l3_processors, 56);
}

TEST(ReadPoints, FollowFromTheCachesAndStayWithinTheFreeMemory) {
  const CacheSizes caches{.l1 = 32u << 10, .l2 = 1u << 20, .l3 = 32u << 20, .l3_processors = 2, .known = true};
  const auto two = read_points(caches, 2, std::uint64_t{16} << 30, Effort::kFull);
  ASSERT_THAT(two, SizeIs(4));
  EXPECT_EQ(two[0].bytes_per_thread, 512u << 10);
  EXPECT_EQ(two[1].bytes_per_thread, 8u << 20);
  EXPECT_EQ(two[3].bytes_per_thread, 512u << 20);
  for (const int threads : {1, 2, 7, 64})
    for (const std::uint64_t free : {std::uint64_t{8} << 20, std::uint64_t{1} << 30, std::uint64_t{64} << 30})
      for (const ReadPoint& point : read_points(caches, threads, free, Effort::kQuick))
        EXPECT_LE(point.bytes_per_thread * static_cast<std::uint64_t>(threads), free / 8) << point.where << " " << threads;
  CacheSizes none = caches;
  none.l3 = 0;
  EXPECT_THAT(read_points(none, 1, std::uint64_t{16} << 30, Effort::kQuick), SizeIs(3));  // no level 3 to be read
}

TEST(RunTogether, EveryThreadRunsEveryTime) {
  std::atomic<int> calls[3] = {};
  EXPECT_THAT(run_together(3, 4, [&](int thread) { calls[thread].fetch_add(1); }), SizeIs(4));
  for (const auto& c : calls) EXPECT_EQ(c.load(), 4);
}

TEST(ReadSpeed, IsMeasuredForAnySize) {
  for (const std::uint64_t bytes : {256u, 4096u + 100u, 3u << 20}) {
    const auto speed = measure_read({.threads = 2, .bytes_per_thread = bytes, .pages = Pages::kHuge, .seconds = 0.002, .runs = 3});
    ASSERT_TRUE(speed) << speed.error().message;
    EXPECT_EQ(speed->count, 3);
    EXPECT_GT(speed->min, 0);
  }
}

TEST(ReadSpeed, ThreadsArePinnedAndMemoryLiesWhereItWasAskedFor) {
  const std::vector<int> processors(1, allowed_processors().front());
  const ReadRequest pinned{.threads = 1, .bytes_per_thread = 1 << 20, .seconds = 0.002, .runs = 2, .processors = processors};
  EXPECT_TRUE(measure_read(pinned));
  ReadRequest placed = pinned, nowhere = pinned, too_many = pinned;
  placed.memory_node = 0;
  const auto speed = measure_read(placed);
  EXPECT_TRUE(speed || speed.error().code == ErrorCode::kUnsupported) << speed.error().message;
  nowhere.memory_node = 1000;
  EXPECT_EQ(measure_read(nowhere).error().code, ErrorCode::kUnsupported);
  too_many.threads = 2;
  EXPECT_EQ(measure_read(too_many).error().code, ErrorCode::kInvalidArgument);
}

TEST(ReadSpeed, RefusesNothingAndTooMuch) {
  EXPECT_EQ(measure_read({.threads = 1, .bytes_per_thread = 0}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(measure_read({.threads = 4, .bytes_per_thread = UINT64_MAX}).error().code, ErrorCode::kInvalidArgument);
}

TEST(MultiplyAdd, EveryUsableLoopRunsAndTheFirstAlwaysCan) {
  ASSERT_FALSE(multiply_add_loops().empty());
  EXPECT_TRUE(multiply_add_loops().front().usable);
  for (const MultiplyAddLoop& loop : multiply_add_loops()) {
    if (!loop.usable) continue;
    const Peak peak = measure_multiply_add(loop, 2, 0.001, 2);
    EXPECT_GT(peak.ops_per_s.median, 0) << loop.name;
    EXPECT_EQ(peak.threads, 2);
    EXPECT_GT(loop.ops_per_step, 0) << loop.name;
  }
}

TEST(HandOver, IsMeasuredForOneThreadAndForMoreThanThereAreProcessors) {
  for (const int threads : {1, 3}) {
    const HandOver cost = measure_hand_over(threads, 0.001);
    EXPECT_EQ(cost.threads, threads);
    EXPECT_GT(cost.spinning_s.median, 0);
    EXPECT_GT(cost.parked_s.median, 0);
  }
}

TEST(CoreSharing, PairsTheFirstProcessorWithOthers) {
  const auto allowed = allowed_processors();
  ASSERT_FALSE(allowed.empty());
  for (const PairSpeed& pair : measure_core_sharing(1)) {
    EXPECT_EQ(pair.first, allowed[0]);
    EXPECT_NE(pair.second, pair.first);
    EXPECT_GT(pair.speed, 0);
  }
  EXPECT_TRUE((PairSpeed{0, 1, 1.05}.shares_core()));
  EXPECT_FALSE((PairSpeed{0, 1, 1.98}.shares_core()));
}

TEST(Machine, CanBeCancelled) {
  const auto limits = measure_machine(1, Effort::kQuick, [] { return false; });
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error().code, ErrorCode::kCancelled);
}

TEST(Machine, LimitsAreTheBestOfMemoryAndOfEachArithmeticWithAllThreads) {
  MachineLimits machine;
  machine.threads = 2;
  const auto read = [&](const char* where, int threads, Pages pages, double best) {
    machine.reads.push_back({where, 100, pages, threads, {.median = best / 2, .min = best / 3, .max = best, .count = 3}});
  };
  read("L2", 2, Pages::kHuge, 900e9);
  read(kDram, 1, Pages::kHuge, 40e9);
  read(kDram, 2, Pages::kOrdinary, 30e9);
  read(kDram, 2, Pages::kHuge, 35e9);
  const auto peak = [&](const char* name, Arithmetic arithmetic, int threads, double best) {
    Peak p;
    p.name = name, p.arithmetic = arithmetic, p.threads = threads, p.ops_per_s.max = best;
    machine.peaks.push_back(p);
  };
  peak("narrow", Arithmetic::kF32, 2, 100e9);
  peak("wide", Arithmetic::kF32, 2, 200e9);
  peak("alone", Arithmetic::kF32, 1, 300e9);
  peak("int8", Arithmetic::kInt8, 2, 800e9);
  const Limits limits = limits_of(machine);
  EXPECT_EQ(limits.threads, 2);
  EXPECT_EQ(limits.working_set, 200u);
  EXPECT_EQ(limits.read.per_s, 35e9);
  EXPECT_EQ(limits.read.by, "2 MiB pages");
  ASSERT_THAT(limits.arithmetic, SizeIs(2));
  EXPECT_EQ(limits.arithmetic.at(Arithmetic::kF32).per_s, 200e9);
  EXPECT_EQ(limits.arithmetic.at(Arithmetic::kF32).by, "wide");
  EXPECT_EQ(limits_of({}).read.per_s, 0);
}

Limits example_limits() {
  Limits limits;
  limits.threads = 2;
  limits.read = {50e9, "2 MiB pages"};
  limits.arithmetic = {{Arithmetic::kInt8, {1000e9, "int8"}}, {Arithmetic::kF32, {200e9, "fma"}}, {Arithmetic::kBF16, {400e9, "dot"}}};
  return limits;
}

TEST(Roofline, TheLongerOfReadingAndComputingBounds) {
  const Limits limits = example_limits();
  const BestTime reading = best_time({.bytes = 100e9, .ops = {{Arithmetic::kInt8, 1000e9}}}, limits);
  EXPECT_DOUBLE_EQ(reading.seconds, 2);
  EXPECT_STREQ(reading.bound, "memory");
  const BestTime computing = best_time({.bytes = 50e9, .ops = {{Arithmetic::kInt8, 1000e9}, {Arithmetic::kF32, 500e9}}}, limits);
  EXPECT_DOUBLE_EQ(computing.seconds, 1 + 2.5);
  EXPECT_STREQ(computing.bound, "fp32");
  EXPECT_EQ(best_time({.bytes = 0, .ops = {}}, limits).seconds, 0);
}

TEST(Roofline, TheFastestArithmeticThatAWeightAllowsCounts) {
  Limits limits = example_limits();
  EXPECT_EQ(arithmetic_for(DType::kQ4_K, Activations::kInt8, limits), Arithmetic::kInt8);
  EXPECT_EQ(arithmetic_for(DType::kQ4_K, Activations::kF32, limits), Arithmetic::kF32);
  EXPECT_EQ(arithmetic_for(DType::kBF16, Activations::kInt8, limits), Arithmetic::kBF16);
  EXPECT_EQ(arithmetic_for(DType::kF16, Activations::kInt8, limits), Arithmetic::kF32);  // no fp16 arithmetic here
  limits.arithmetic[Arithmetic::kBF16].per_s = 100e9;  // as on processors where the bf16 dot product is the slower one
  EXPECT_EQ(arithmetic_for(DType::kBF16, Activations::kInt8, limits), Arithmetic::kF32);
  limits.arithmetic.erase(Arithmetic::kInt8);
  EXPECT_EQ(arithmetic_for(DType::kQ4_0, Activations::kInt8, limits), Arithmetic::kF32);
}

TEST(Roofline, OfTwoMeasurementsTheBestCounts) {
  Limits first = example_limits(), second = example_limits();
  second.read = {60e9, "ordinary pages"};
  second.arithmetic[Arithmetic::kInt8].per_s = 900e9;
  merge_limits(first, second);
  EXPECT_EQ(first.read.per_s, 60e9);
  EXPECT_EQ(first.read.by, "ordinary pages");
  EXPECT_EQ(first.arithmetic[Arithmetic::kInt8].per_s, 1000e9);
}

TEST(Roofline, IsMeasuredWithAllArithmeticOfTheMachine) {
  const auto limits = measure_limits(1, 1u << 20);
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_GT(limits->read.per_s, 0);
  EXPECT_TRUE(limits->arithmetic.contains(Arithmetic::kF32));
  EXPECT_EQ(limits->working_set, 1u << 20);
}

TEST(Roofline, WorkingSetsAreBounded) {
  constexpr std::uint64_t kMiB = 1u << 20, kGiB = 1u << 30;
  EXPECT_EQ(bounded_working_set(97 * kMiB, 16 * kGiB), 97 * kMiB);
  EXPECT_EQ(bounded_working_set(UINT64_MAX, 16 * kGiB), 512 * kMiB);
  EXPECT_EQ(bounded_working_set(2 * kGiB, 400 * kMiB), 100 * kMiB);
  EXPECT_EQ(bounded_working_set(0, 0), kMiB);
}

}  // namespace
}  // namespace weir::kernels
