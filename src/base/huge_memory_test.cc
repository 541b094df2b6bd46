// SPDX-License-Identifier: Apache-2.0
#include "base/huge_memory.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(HugeMemory, LiesAtALargeBorderAndIsZero) {
  for (const std::size_t bytes : {std::size_t{1}, kHugePage, 3 * kHugePage + 5}) {
    const HugeMemory memory = allocate_huge(bytes);
    ASSERT_TRUE(memory);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.bytes.data()) % kHugePage, 0u);
    ASSERT_EQ(memory.bytes.size(), bytes);
    EXPECT_EQ(memory.bytes.back(), std::byte{0});
    memory.bytes.back() = std::byte{7};
  }
  EXPECT_FALSE(allocate_huge(0));
  EXPECT_FALSE(allocate_huge(SIZE_MAX));
}

TEST(HugeMemory, ReadsTheKernelsSetting) {
  EXPECT_TRUE(parse_thp_enabled("always [madvise] never\n"));
  EXPECT_TRUE(parse_thp_enabled("[always] madvise never\n"));
  EXPECT_FALSE(parse_thp_enabled("always madvise [never]\n"));
  EXPECT_FALSE(parse_thp_enabled(""));
}

}  // namespace
}  // namespace weir
