// SPDX-License-Identifier: Apache-2.0
// Every name of a table is known, gives that table where the machine runs it, and says so where it does not.
#include "kernels/cpu_features.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace weir::kernels {
namespace {

TEST(ChooseKernelTable, GivesTheTableOfEachNameOrSaysThatItCannotRun) {
  const CpuFeatures& cpu = cpu_features();
  const struct {
    const char* name;
    bool runs;
  } cases[] = {
      {"reference", true}, {"avx2", cpu.avx2}, {"avx2_vnni", cpu.avx_vnni}, {"avx512", cpu.avx512_vnni}, {"avx512_bf16", cpu.avx512_bf16},
      {"amx", cpu.amx}};
  for (const auto& c : cases) {
    const auto table = choose_kernel_table(c.name);
    ASSERT_EQ(table.has_value(), c.runs) << c.name;
    if (c.runs) {
      EXPECT_STREQ((*table)->name, c.name);
    } else {
      EXPECT_EQ(table.error().code, ErrorCode::kUnsupported) << c.name;
    }
  }
}

TEST(ChooseKernelTable, RefusesUnknownNames) {
  for (const char* name : {"avx1024", "amx_emulated", "AVX2", "avx"}) {
    const auto table = choose_kernel_table(name);
    ASSERT_FALSE(table.has_value()) << name;
    EXPECT_EQ(table.error().code, ErrorCode::kInvalidArgument) << name;
  }
}

TEST(ChooseKernelTable, PrefersWhatTheProcessorDoesFast) {
  if (std::getenv("WEIR_ISA")) GTEST_SKIP() << "WEIR_ISA is set";
  const CpuFeatures& cpu = cpu_features();
  const char* best = cpu.amx              ? "amx"
                     : cpu.fast_bf16_dots ? "avx512_bf16"
                     : cpu.avx512_vnni    ? "avx512"
                     : cpu.avx_vnni       ? "avx2_vnni"
                     : cpu.avx2           ? "avx2"
                                          : "reference";
  EXPECT_STREQ(choose_kernel_table("").value()->name, best);
}

}  // namespace
}  // namespace weir::kernels
