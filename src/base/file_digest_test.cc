// SPDX-License-Identifier: Apache-2.0
#include "base/file_digest.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file_io.h"
#include "base/sha256.h"
#include "base/testing.h"

namespace weir {
namespace {

std::shared_ptr<const MappedFile> map(const std::filesystem::path& path) { return MappedFile::open(path).value(); }

TEST(FileDigest, DependsOnTheContentAloneAndNotOnTheThreads) {
  const testing::TemporaryFolder folder;
  std::string content(std::size_t{9} << 20, 'x');
  for (std::size_t i = 0; i < content.size(); i += 997) content[i] = static_cast<char>(i);
  ASSERT_TRUE(write_file_atomically(folder.path() / "a", content));
  ASSERT_TRUE(write_file_atomically(folder.path() / "b", content));
  content.back() ^= 1;
  ASSERT_TRUE(write_file_atomically(folder.path() / "c", content));
  ThreadPool one(1), three(3);
  const std::string digest = digest_of(*map(folder.path() / "a"), one);
  EXPECT_EQ(digest_of(*map(folder.path() / "a"), three), digest);
  EXPECT_EQ(digest_of(*map(folder.path() / "b"), three), digest);
  EXPECT_NE(digest_of(*map(folder.path() / "c"), three), digest);
  ASSERT_TRUE(write_file_atomically(folder.path() / "empty", ""));
  EXPECT_EQ(digest_of(*map(folder.path() / "empty"), one), sha256_of("0\n"));
}

TEST(FileDigest, TheIndexRemembersTheLatestAndSurvivesDamage) {
  const testing::TemporaryFolder folder;
  const DigestIndex index(folder.path() / "sub" / "digests");
  const std::string a = sha256_of("a"), b = sha256_of("b");
  EXPECT_EQ(index.find("file 1"), std::nullopt);
  ASSERT_TRUE(index.remember("file 1", a));
  ASSERT_TRUE(index.remember("file 2", b));
  EXPECT_EQ(index.find("file 1"), a);
  ASSERT_TRUE(index.remember("file 1", b));
  EXPECT_EQ(index.find("file 1"), b);
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "sub" / "digests"), 2u * 130);
  std::fstream(folder.path() / "sub" / "digests", std::ios::in | std::ios::out).put('?');
  EXPECT_EQ(index.find("file 1"), std::nullopt);
  ASSERT_TRUE(index.remember("file 1", a));
  EXPECT_EQ(index.find("file 1"), a);
}

TEST(FileDigest, AFileThatChangesIsReadAgain) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "model";
  const DigestIndex index(folder.path() / "digests");
  ThreadPool pool(2);
  const auto age = [&] {  // written an hour ago, as far as its times can be set
    const timespec hour_ago[] = {{.tv_sec = ::time(nullptr) - 3600, .tv_nsec = 0}, {.tv_sec = ::time(nullptr) - 3600, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), hour_ago, 0), 0);
  };
  ASSERT_TRUE(write_file_atomically(path, "first"));
  age();
  const auto first = map(path);
  EXPECT_TRUE(first->just_changed());  // its status was, a moment ago
  const std::string digest = remembered_digest(*first, index, pool).value();
  EXPECT_EQ(index.find(first->identity()), std::nullopt);
  ASSERT_TRUE(index.remember(first->identity(), digest));
  EXPECT_EQ(remembered_digest(*map(path), index, pool).value(), digest);

  std::ofstream(path, std::ios::binary) << "other";  // the same size, in place
  age();
  EXPECT_FALSE(first->unchanged());
  EXPECT_NE(remembered_digest(*map(path), index, pool).value(), digest);
}

}  // namespace
}  // namespace weir
