// SPDX-License-Identifier: Apache-2.0
#include "base/page_mover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file_io.h"
#include "base/huge_memory.h"
#include "base/testing.h"

namespace weir {
namespace {

// A file of a header and then bytes that all differ in some way.
std::string numbered(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 4096 * 7);
  return text;
}

AlignedMap map(const std::filesystem::path& path, std::size_t size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  AlignedMap found = map_aligned(fd, 4096, size);
  ::close(fd);
  return found;
}

TEST(PageMover, BytesStayWhereTheyAreAndWhatTheyAre) {
  const testing::TemporaryFolder folder;
  for (const std::size_t size : {std::size_t{100}, kHugePage, 5 * kHugePage + 12'345}) {
    const std::string text = numbered(4096 + size);
    const auto path = folder.path() / "file";
    ASSERT_TRUE(write_file_atomically(path, text));
    const AlignedMap found = map(path, size);
    ASSERT_EQ(found.bytes.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.bytes.data()) % kHugePage, 0u);
    const auto same = [&] { return std::memcmp(found.bytes.data(), text.data() + 4096, size) == 0; };
    EXPECT_TRUE(same());
    PageMover mover(found, {});
    for (int i = 0; i < 10'000 && mover.move_some(kHugePage); ++i) {
      if (i < 8) {
        ASSERT_TRUE(same());
      }
    }
    EXPECT_TRUE(same());
    EXPECT_FALSE(mover.move_some(kHugePage));
    // No page of the file is left but the last part of one: overwriting the file in place does not show.
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(fd, "XXXX", 4, 4096), 4);
    ::close(fd);
    EXPECT_EQ(same(), size >= kHugePage);
  }
}

TEST(PageMover, ReadsHowAMappingIsMapped) {
  const char* smaps =
      "7f0000000000-7f0000200000 r--s 00000000 fe:00 1 /a\nRss: 2048 kB\nFilePmdMapped: 0 kB\nVmFlags: rd\n"
      "7f0000400000-7f0000a00000 r--s 00200000 fe:00 1 /a\nRss: 6144 kB\nFilePmdMapped:     4096 kB\nVmFlags: rd\n";
  EXPECT_EQ(parse_huge_mapped(smaps, reinterpret_cast<const void*>(0x7f0000400000)), 4096u * 1024);
  EXPECT_EQ(parse_huge_mapped(smaps, reinterpret_cast<const void*>(0x7f0000800000)), 0u);
  EXPECT_EQ(parse_huge_mapped("", nullptr), 0u);
}

TEST(PageMover, AFileThatIsNotThereGivesNothing) {
  EXPECT_EQ(map_aligned(-1, 0, 100).owner, nullptr);
  EXPECT_EQ(map_aligned(-1, 0, 0).owner, nullptr);
}

}  // namespace
}  // namespace weir
