// SPDX-License-Identifier: Apache-2.0
#include "base/cache_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/testing.h"

namespace weir {
namespace {

CacheFile::Options options_in(const testing::TemporaryFolder& folder, std::uint64_t limit = 10 << 20) {
  return {.folder = folder.path() / "cache", .limit_bytes = limit};
}

auto filled_with(int value) {
  return [value](std::span<std::byte> out) { std::memset(out.data(), value, out.size()); };
}

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(CacheFile, GivesBackWhatWasMadeUnderTheSameKeyOnly) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  EXPECT_FALSE(CacheFile::open(options, "a", 1000));
  auto made = CacheFile::create(options, "a", 1000, filled_with(7));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->data().size(), 1000u);
  EXPECT_EQ(made->data()[999], std::byte{7});
  auto found = CacheFile::open(options, "a", 1000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->data()[500], std::byte{7});
  EXPECT_FALSE(CacheFile::open(options, "b", 1000));
  EXPECT_FALSE(CacheFile::open(options, "a", 999));
  EXPECT_EQ(files_in(options.folder), 1u);
}

TEST(CacheFile, ADamagedFileIsAMiss) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  ASSERT_TRUE(CacheFile::create(options, "a", 1000, filled_with(7)));
  const auto path = std::filesystem::directory_iterator(options.folder)->path();
  std::filesystem::resize_file(path, 5000);
  EXPECT_FALSE(CacheFile::open(options, "a", 1000));
  ASSERT_TRUE(CacheFile::create(options, "a", 1000, filled_with(8)));
  std::fstream(path, std::ios::in | std::ios::out).put('X');
  EXPECT_FALSE(CacheFile::open(options, "a", 1000));
  ASSERT_TRUE(CacheFile::create(options, "a", 1000, filled_with(8)));
  std::fstream body(path, std::ios::in | std::ios::out);
  body.seekp((1 << 16) + 777);
  body.put('X');
  body.close();
  EXPECT_FALSE(CacheFile::open(options, "a", 1000));
}

TEST(CacheFile, WhatAKilledProcessLeftGoesAway) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  ASSERT_TRUE(CacheFile::create(options, "a", 1000, filled_with(1)));
  for (const char* name : {"0123.cache.AbCdEf", "4567.cache.GhIjKl"}) std::ofstream(options.folder / name) << "part";
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  std::filesystem::last_write_time(options.folder / "0123.cache.AbCdEf", old);
  ASSERT_TRUE(CacheFile::create(options, "b", 1000, filled_with(2)));
  EXPECT_FALSE(std::filesystem::exists(options.folder / "0123.cache.AbCdEf"));
  EXPECT_TRUE(std::filesystem::exists(options.folder / "4567.cache.GhIjKl"));
}

TEST(CacheFile, KeepsTheFolderWithinItsLimit) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder, 300'000);
  ASSERT_TRUE(CacheFile::create(options, "old", 50'000, filled_with(1)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(CacheFile::create(options, "new", 50'000, filled_with(2)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(CacheFile::open(options, "old", 50'000));  // now the more recently used
  ASSERT_TRUE(CacheFile::create(options, "third", 50'000, filled_with(3)));
  EXPECT_TRUE(CacheFile::open(options, "old", 50'000));
  EXPECT_FALSE(CacheFile::open(options, "new", 50'000));
  EXPECT_TRUE(CacheFile::open(options, "third", 50'000));
  EXPECT_EQ(CacheFile::create(options, "huge", 400'000, filled_with(4)).error().code, ErrorCode::kExhausted);
}

TEST(CacheFile, NoRoomOnTheDiskIsAnErrorThatLeavesNothing) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const auto made = CacheFile::create(options, "a", 1 << 20, filled_with(7));
  std::signal(SIGXFSZ, old);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kExhausted) << made.error().message;
  EXPECT_EQ(files_in(options.folder), 0u);
}

}  // namespace
}  // namespace weir
