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
  for (const char* nonsense : {"", "\n", "a", "3-1", "-2", "1,,2", "0-", "0-99999999", "0-4000,5000-9000", "99999999999"})
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
