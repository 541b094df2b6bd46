// SPDX-License-Identifier: Apache-2.0
#include "model/pages_ahead.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace weir::model {
namespace {

constexpr std::uint64_t kMebi = 1u << 20;

struct Mapped {
  explicit Mapped(std::uint64_t size) : bytes(size) {
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data = p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
  }
  ~Mapped() { ::munmap(data, bytes); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::uint64_t resident() const {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages(bytes / page);
    if (::mincore(data, bytes, pages.data()) != 0) return 0;
    std::uint64_t count = 0;
    for (const unsigned char p : pages) count += p & 1;
    return count * page;
  }

  std::uint64_t bytes;
  std::byte* data = nullptr;
};

class PagesAheadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Mapped page(4096);
    ASSERT_NE(page.data, nullptr);
    if (!PagesAhead(page.data, page.bytes, page.bytes).touch()) GTEST_SKIP() << "no MADV_POPULATE_WRITE: Linux before 5.14";
  }
};

TEST_F(PagesAheadTest, TouchesSoMuchBeyondWhatIsInUse) {
  Mapped memory(32 * kMebi);
  ASSERT_NE(memory.data, nullptr);
  PagesAhead pages(memory.data, memory.bytes, 4 * kMebi);
  EXPECT_TRUE(pages.touch());
  EXPECT_TRUE(pages.touch());
  EXPECT_FALSE(pages.touch());
  EXPECT_EQ(memory.resident(), 4 * kMebi);
  pages.used_up_to(kMebi);  // three are left, so that one more piece is due
  EXPECT_TRUE(pages.touch());
  EXPECT_FALSE(pages.touch());
  EXPECT_EQ(memory.resident(), 6 * kMebi);
  pages.used_up_to(21 * kMebi);  // by a leap: what is in use has its pages already, or gets them soon
  while (pages.touch()) {
  }
  EXPECT_EQ(pages.ready(), 26 * kMebi);
  EXPECT_EQ(memory.resident(), 12 * kMebi);
  pages.used_up_to(2 * kMebi);  // less than before changes nothing
  EXPECT_FALSE(pages.touch());
}

TEST_F(PagesAheadTest, EndsWithItsMemory) {
  Mapped memory(3 * kMebi);
  ASSERT_NE(memory.data, nullptr);
  PagesAhead pages(memory.data, memory.bytes, 64 * kMebi);
  EXPECT_TRUE(pages.touch());
  EXPECT_TRUE(pages.touch());
  EXPECT_FALSE(pages.touch());
  EXPECT_EQ(memory.resident(), 3 * kMebi);
  pages.used_up_to(100 * kMebi);
  EXPECT_FALSE(pages.touch());
}

TEST(PagesAhead, KeepsWhatIsThere) {
  Mapped memory(2 * kMebi);
  ASSERT_NE(memory.data, nullptr);
  memory.data[5] = std::byte{7};
  PagesAhead pages(memory.data, memory.bytes, 2 * kMebi);
  pages.touch();
  EXPECT_EQ(memory.data[5], std::byte{7});
}

TEST(PagesAhead, WithoutMemoryDoesNothing) {
  PagesAhead pages;
  pages.used_up_to(10);
  EXPECT_FALSE(pages.touch());
  PagesAhead refused(nullptr, kMebi, kMebi);  // no such pages
  EXPECT_FALSE(refused.touch());
  EXPECT_FALSE(refused.touch());
}

}  // namespace
}  // namespace weir::model
