// SPDX-License-Identifier: Apache-2.0
#include "base/system_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "base/testing.h"

namespace weir {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(SystemMemory, ReadsTheLineOfAKey) {
  const char* text = "MemTotal:       2000 kB\nMemAvailable:   123 kB\nMemAvailableToo: 7 kB\n";
  EXPECT_EQ(parse_kilobytes(text, "MemAvailable"), 123 * 1024);
  EXPECT_EQ(parse_kilobytes(text, "Mem"), std::nullopt);
  EXPECT_EQ(parse_kilobytes("VmRSS: lots\n", "VmRSS"), std::nullopt);
  EXPECT_EQ(parse_kilobytes("VmRSS: 99999999999999999 kB\n", "VmRSS"), std::nullopt);  // more bytes than 64 bits count
  EXPECT_EQ(parse_kilobytes("VmRSS:", "VmRSS"), std::nullopt);
}

TEST(SystemMemory, TakesTheNearestLimitOfTheGroupsAbove) {
  const testing::TemporaryFolder folder;
  const auto root = folder.path();
  write(root / "a/memory.max", "1000\n");
  write(root / "a/memory.current", "700\n");
  write(root / "a/memory.stat", "anon 100\ninactive_file 200\nactive_file 50\n");
  write(root / "a/b/memory.max", "max\n");
  write(root / "a/b/memory.current", "600\n");
  EXPECT_EQ(cgroup_memory_left(root, "0::/a/b\n"), 500u);  // 1000 - (700 - 200 that can be given back)
  EXPECT_EQ(cgroup_memory_left(root, "0::/c\n"), std::nullopt);
  write(root / "a/b/memory.max", "650\n");
  EXPECT_EQ(cgroup_memory_left(root, "0::/a/b\n"), 50u);
  write(root / "a/b/memory.max", "10\n");  // lowered below what is used
  EXPECT_EQ(cgroup_memory_left(root, "0::/a/b\n"), 0u);
}

TEST(SystemMemory, OfThisProcessGrowsWithWhatIsTouched) {
  const ProcessMemory before = process_memory();
  ASSERT_GT(before.resident, 0u);
  constexpr std::size_t kBytes = 64u << 20;
  std::vector<char> touched(kBytes, 1);
  const ProcessMemory after = process_memory();
  EXPECT_GT(after.anonymous, kBytes / 2) << static_cast<int>(touched[kBytes / 2]);
  EXPECT_GE(after.peak, after.resident);
  EXPECT_GT(available_memory().value_or(0), 0u);
}

}  // namespace
}  // namespace weir
