// SPDX-License-Identifier: Apache-2.0
// Topologies that this machine does not have, as their files would describe them.
#include "base/numa.h"

#include <gmock/gmock.h>

#include "base/file_io.h"
#include "base/huge_memory.h"
#include "base/testing.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Numa, ReadsLists) {
  EXPECT_THAT(parse_processor_list("0\n"), ElementsAre(0));
  EXPECT_THAT(parse_processor_list("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  for (const char* nonsense :
       {"", "\n", "a", "3-1", "-2", "1,,2", "0-", "0-99999999", "0-4000,5000-9000", "99999999999", "0,", "65536", "2147483647-2147483647"})
    EXPECT_THAT(parse_processor_list(nonsense), IsEmpty()) << nonsense;
}

TEST(Numa, NodesWithoutMemoryDoNotCount) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT(read_memory_nodes(folder.path()), IsEmpty());
  ASSERT_TRUE(write_file_atomically(folder.path() / "online", "0-3\n"));
  EXPECT_THAT(read_memory_nodes(folder.path()), ElementsAre(0, 1, 2, 3));
  ASSERT_TRUE(write_file_atomically(folder.path() / "has_memory", "0,2\n"));
  EXPECT_THAT(read_memory_nodes(folder.path()), ElementsAre(0, 2));
}

void write_node(const std::filesystem::path& folder, const char* processors, const char* memory, const char* distance) {
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_file_atomically(folder / "cpulist", processors));
  ASSERT_TRUE(write_file_atomically(folder / "meminfo", memory));
  ASSERT_TRUE(write_file_atomically(folder / "distance", distance));
}

TEST(Numa, NodesHaveProcessorsMemoryAndDistances) {
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder.path() / "online", "0-1,4\n"));
  write_node(folder.path() / "node0", "0-1,8-9\n", "\nNode 0 MemTotal:       2048 kB\nNode 0 MemFree:        1024 kB\n", "10 21 40\n");
  write_node(folder.path() / "node1", "2-3\n", "Node 1 MemTotal: 4096 kB\nNode 1 MemFree: 4 kB\n", "21 10 40\n");
  write_node(folder.path() / "node4", "\n", "Node 4 MemTotal: 8192 kB\nNode 4 MemFree: 8192 kB\n", "40 40 10\n");
  const auto nodes = read_numa_nodes(folder.path());
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_THAT(nodes[0].processors, ElementsAre(0, 1, 8, 9));
  EXPECT_THAT(nodes[1].distances, ElementsAre(21, 10, 40));
  EXPECT_EQ(nodes[0].memory_bytes, 2u << 20);
  EXPECT_EQ(nodes[0].free_bytes, 1u << 20);
  EXPECT_EQ(nodes[2].number, 4);
  EXPECT_THAT(nodes[2].processors, IsEmpty());
}

TEST(Numa, FilesThatMakeNoSenseLeaveTheirMemberEmpty) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT(read_numa_nodes(folder.path()), IsEmpty());
  ASSERT_TRUE(write_file_atomically(folder.path() / "online", "0-3000\n"));
  EXPECT_THAT(read_numa_nodes(folder.path()), IsEmpty());
  ASSERT_TRUE(write_file_atomically(folder.path() / "online", "1,0-1,2\n"));
  write_node(folder.path() / "node0", "1,0,1\n", "Node 0 MemTotal: 99999999999999999999 kB\n", "10 20\n");
  write_node(folder.path() / "node1", "0-3\n", "Node 0 MemTotal: 4 kB\n", "10 -5 20\n");  // speaks of another node
  const auto nodes = read_numa_nodes(folder.path());
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_THAT(nodes[0].processors, ElementsAre(0, 1));
  EXPECT_THAT(nodes[1].processors, ElementsAre(2, 3)) << "0 and 1 belong to the first";
  EXPECT_THAT(nodes[2].processors, IsEmpty()) << "it has no files";
  for (const NumaNode& node : nodes) {
    EXPECT_EQ(node.memory_bytes, 0u);
    EXPECT_THAT(node.distances, IsEmpty());
  }
}

TEST(Numa, PagesAreOnANodeThatHasMemory) {
  const HugeMemory memory = allocate_huge(1 << 20);
  memory.bytes.front() = std::byte{1};
  const auto node = node_of(memory.bytes.data());
  if (!node) GTEST_SKIP() << "the kernel does not tell";
  EXPECT_THAT(read_memory_nodes(), ::testing::Contains(*node));
}

TEST(Numa, OneNodeNeedsNothingAndNodesThatAreNotThereAreRefused) {
  const HugeMemory memory = allocate_huge(1 << 20);
  const int one[] = {0}, absent[] = {700, 900};
  EXPECT_TRUE(interleave(memory.bytes, one));
  EXPECT_TRUE(interleave(memory.bytes, {}));
  EXPECT_FALSE(interleave(memory.bytes, absent));
  EXPECT_FALSE(prefer_node(memory.bytes, 700));
  memory.bytes.front() = std::byte{1};  // works all the same
}

}  // namespace
}  // namespace weir
