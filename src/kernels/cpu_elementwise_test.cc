// SPDX-License-Identifier: Apache-2.0
// Row operations through the backend: groups, strides, shapes of every kind, and the same bits on any number of threads.
#include <cmath>
#include <cstdlib>

#include "kernels/cpu_backend_impl.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;
using ::testing::ElementsAre;

class RowOperations : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  CpuBackend& cpu(int threads = 1) {
    backends_.push_back(std::make_unique<CpuBackend>(*GetParam(), Activations::kInt8, threads));
    return *backends_.back();
  }

 private:
  std::vector<std::unique_ptr<CpuBackend>> backends_;
};
INSTANTIATE_TEST_SUITE_P(All, RowOperations, ::testing::ValuesIn(runnable_tables()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(RowOperations, NormsTakeGroupsWithSharedOrOwnWeights) {
  const Floats x = random_floats(3 * 24, 1), own = random_floats(24, 2);
  const Floats shared(own.begin(), own.begin() + 8);
  Floats a(x.size()), b(x.size()), expected(8);
  cpu().norm({x.data(), 3, 24}, {.group = 8, .weight = shared.data()}, {a.data(), 3, 24});
  cpu().norm({x.data(), 3, 24}, {.group = 8, .weight = own.data(), .shared = false}, {b.data(), 3, 24});
  for (std::size_t g = 0; g < 9; ++g) {
    cpu().norm({x.data() + 8 * g, 1, 8}, {.weight = shared.data()}, {expected.data(), 1, 8});
    EXPECT_TRUE(same_bits(expected, {a.begin() + static_cast<std::ptrdiff_t>(8 * g), a.begin() + static_cast<std::ptrdiff_t>(8 * g + 8)}));
    cpu().norm({x.data() + 8 * g, 1, 8}, {.weight = own.data() + 8 * (g % 3)}, {expected.data(), 1, 8});
    EXPECT_TRUE(same_bits(expected, {b.begin() + static_cast<std::ptrdiff_t>(8 * g), b.begin() + static_cast<std::ptrdiff_t>(8 * g + 8)}));
  }
}

TEST_P(RowOperations, RopeTurnsAPartOfEachHead) {
  Floats x(2 * 8);  // two heads of four, columns 1 and 2 turn by a right angle
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Floats table{0, 1, 0, 1};  // per row: cosine 0, sine 1
  cpu().rope({x.data(), 2, 8}, 2, 1, {table.data(), 2, 2}, false);
  EXPECT_THAT(x, ElementsAre(0, -2, 1, 3, 4, -6, 5, 7, 8, -10, 9, 11, 12, -14, 13, 15));
}

TEST_P(RowOperations, RowsAreGatheredAndCombined) {
  const Floats x{1, 2, 10, 20, 100, 200};
  Floats gathered(4), combined{1, 1, 1, 1};
  const std::vector<std::int32_t> rows{2, 0};
  cpu().gather_rows({x.data(), 3, 2}, rows, {gathered.data(), 2, 2});
  EXPECT_THAT(gathered, ElementsAre(100, 200, 1, 2));
  const std::vector<std::int32_t> pick{0, 1, 2, 2};
  const Floats weights{0.5f, 2, 1, 1};
  cpu().combine_rows({x.data(), 3, 2}, pick, weights, 2, true, {combined.data(), 2, 2});
  EXPECT_THAT(combined, ElementsAre(21.5f, 42, 201, 401));
  cpu().combine_rows({x.data(), 3, 2}, pick, weights, 2, false, {combined.data(), 2, 2});
  EXPECT_THAT(combined, ElementsAre(20.5f, 41, 200, 400));
}

TEST_P(RowOperations, ColumnsMoveInPieces) {
  const Floats x{0, 1, 2, 3, 4, 5, 6, 7};
  Floats out(4);
  cpu().copy_columns({x.data(), 1, 8}, {.count = 2, .width = 2, .x_first = 1, .x_step = 4, .out_first = 0, .out_step = 2},
                     {out.data(), 1, 4});
  EXPECT_THAT(out, ElementsAre(1, 2, 5, 6));
}

TEST_P(RowOperations, MultiplyTakesOneFactorPerGroup) {
  Floats out{1, 2, 3, 4, 5, 6};
  const Floats factors{10, 100, 1000};
  cpu().multiply({factors.data(), 1, 3}, {out.data(), 1, 6});
  EXPECT_THAT(out, ElementsAre(10, 20, 300, 400, 5000, 6000));
}

TEST_P(RowOperations, StridedRowsLeaveTheirNeighboursAlone) {
  Floats x(3 * 10, 2.0f);
  const Matrix middle{x.data() + 2, 3, 5, 10};
  cpu().scale(2, 0, middle);
  cpu().activate(Activation::kReluSquared, middle, middle);
  cpu().add(middle, 1, middle);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], i % 10 >= 2 && i % 10 < 7 ? 32.0f : 2.0f) << i;
}

TEST_P(RowOperations, ThreadsDoNotShow) {
  constexpr std::int64_t kRows = 300, kCols = 130;
  const Floats gate = random_floats(kRows * kCols, 1, 3), up = random_floats(kRows * kCols, 2, 3);
  const auto all = [&](CpuBackend& b) {
    Floats out(gate.size());
    const Matrix y{out.data(), kRows, kCols};
    const ConstMatrix g{gate.data(), kRows, kCols}, u{up.data(), kRows, kCols};
    b.activate_mul(Activation::kSilu, g, u, y);
    b.add(u, 0.3f, y);
    b.norm(y, {.kind = NormKind::kLayer}, y);
    b.multiply(g, y);
    b.scale(1.5f, 20, y);
    Floats more(gate.size());
    b.clamped_swiglu(g, u, 1.702f, 7, {more.data(), kRows, kCols});
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  const Floats one = all(cpu(1));
  EXPECT_TRUE(same_bits(all(cpu(2)), one));
  EXPECT_TRUE(same_bits(all(cpu(3)), one));
}

TEST(CpuBackend, TheEnvironmentForcesATable) {
  ASSERT_EQ(::setenv("WEIR_ISA", "reference", 1), 0);
  const auto table = choose_kernel_table("");
  ASSERT_TRUE(table);
  EXPECT_STREQ((*table)->name, "reference");
  ASSERT_EQ(::setenv("WEIR_ISA", "mmx", 1), 0);
  EXPECT_EQ(choose_kernel_table("").error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(choose_kernel_table("reference"));  // an explicit choice goes first
  ::unsetenv("WEIR_ISA");
}

TEST(CpuBackend, RefusesWhatItCannotDo) {
  EXPECT_EQ(make_cpu_backend({.isa = "sse9"}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(make_cpu_backend({.threads = -1}).error().code, ErrorCode::kInvalidArgument);
  const auto forced = make_cpu_backend({.threads = 1, .activations = Activations::kF32, .isa = "reference"});
  ASSERT_TRUE(forced);
  EXPECT_EQ((*forced)->description(), "reference, f32 activations, 1 thread");
}

}  // namespace
}  // namespace weir::kernels
