// SPDX-License-Identifier: Apache-2.0
#include "base/cache_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "base/testing.h"

namespace weir {
namespace {

CacheFile::Options options_in(const testing::TemporaryFolder& folder, std::uint64_t limit = 10 << 20) {
  return {.folder = folder.path() / "cache", .limit_bytes = limit};
}

auto filled_with(int value) {
  return [value](std::span<std::byte> out) -> Status {
    std::memset(out.data(), value, out.size());
    return {};
  };
}

Result<CacheFile> open(const CacheFile::Options& options, std::string_view key, std::uint64_t bytes) {
  ThreadPool pool(2);
  return CacheFile::open(options, key, bytes, pool);
}

Result<CacheFile> create(const CacheFile::Options& options, std::string_view key, std::uint64_t bytes, const CacheFile::Fill& fill) {
  ThreadPool pool(2);
  return CacheFile::create(options, key, bytes, fill, pool);
}

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(CacheFile, GivesBackWhatWasMadeUnderTheSameKeyOnly) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  EXPECT_FALSE(open(options, "a", 1000));
  auto made = create(options, "a", 1000, filled_with(7));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->data().size(), 1000u);
  EXPECT_EQ(made->data()[999], std::byte{7});
  auto found = open(options, "a", 1000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->data()[500], std::byte{7});
  EXPECT_FALSE(open(options, "b", 1000));
  EXPECT_FALSE(open(options, "a", 999));
  EXPECT_EQ(files_in(options.folder), 1u);
}

TEST(CacheFile, ADamagedFileIsAMiss) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  ASSERT_TRUE(create(options, "a", 1000, filled_with(7)));
  const auto path = std::filesystem::directory_iterator(options.folder)->path();
  std::filesystem::resize_file(path, 5000);
  EXPECT_FALSE(open(options, "a", 1000));
  ASSERT_TRUE(create(options, "a", 1000, filled_with(8)));
  std::fstream(path, std::ios::in | std::ios::out).put('X');
  EXPECT_FALSE(open(options, "a", 1000));
  ASSERT_TRUE(create(options, "a", 1000, filled_with(8)));
  std::fstream body(path, std::ios::in | std::ios::out);
  body.seekp((2 << 20) + 777);
  body.put('X');
  body.close();
  EXPECT_FALSE(open(options, "a", 1000));
}

TEST(CacheFile, CopiesGiveWhatWasStored) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  ThreadPool pool(3);
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, (std::size_t{5} << 20) + 13}) {
    std::vector<std::byte> data(size), found(size);
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 251);
    const std::string key = "copy " + std::to_string(size);
    EXPECT_EQ(CacheFile::copy_into(options, key, found, pool).error().code, ErrorCode::kNotFound);
    ASSERT_TRUE(CacheFile::store(options, key, data, pool));
    ASSERT_TRUE(CacheFile::copy_into(options, key, found, pool));
    EXPECT_EQ(found, data);
    const auto mapped = CacheFile::open(options, key, size, pool);
    ASSERT_TRUE(mapped);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), mapped->data().begin()));
    std::vector<std::byte> longer(size + 1);
    EXPECT_EQ(CacheFile::copy_into(options, key, longer, pool).error().code, ErrorCode::kCorrupt);
  }
}

TEST(CacheFile, DamageAnywhereIsFoundByBothWaysOfReading) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  ThreadPool pool(2);
  constexpr std::size_t kSize = (std::size_t{4} << 20) + 24;
  const std::vector<std::byte> data(kSize, std::byte{0x5a});
  std::vector<std::byte> found(kSize);
  for (const std::size_t at : {std::size_t{0}, std::size_t{63}, std::size_t{2} << 20, kSize - 1}) {
    ASSERT_TRUE(CacheFile::store(options, "a", data, pool));
    std::fstream body(std::filesystem::directory_iterator(options.folder)->path(), std::ios::in | std::ios::out);
    body.seekp(static_cast<std::streamoff>((2 << 20) + at));
    body.put('\x5b');
    body.close();
    EXPECT_EQ(CacheFile::copy_into(options, "a", found, pool).error().code, ErrorCode::kCorrupt) << at;
    EXPECT_EQ(CacheFile::open(options, "a", kSize, pool).error().code, ErrorCode::kCorrupt) << at;
  }
}

TEST(CacheFile, PiecesInAnotherOrderAreDamage) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  ThreadPool pool(2);
  std::vector<std::byte> data(std::size_t{4} << 20);
  std::fill(data.begin() + (2 << 20), data.end(), std::byte{1});
  ASSERT_TRUE(CacheFile::store(options, "a", data, pool));
  std::rotate(data.begin(), data.begin() + (2 << 20), data.end());
  std::fstream body(std::filesystem::directory_iterator(options.folder)->path(), std::ios::in | std::ios::out | std::ios::binary);
  body.seekp(2 << 20);
  body.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  body.close();
  EXPECT_EQ(CacheFile::copy_into(options, "a", data, pool).error().code, ErrorCode::kCorrupt);
}

TEST(CacheFile, TwoWritersAtOnceLeaveOneWholeFile) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  const std::vector<std::byte> data(3 << 20, std::byte{9});
  const auto write = [&] {
    ThreadPool pool(1);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(CacheFile::store(options, "a", data, pool));
  };
  std::thread other(write);
  write();
  other.join();
  ThreadPool pool(1);
  EXPECT_TRUE(CacheFile::open(options, "a", data.size(), pool));
  EXPECT_EQ(files_in(options.folder), 1u);
}

TEST(CacheFile, WhatCouldNotBeMadeIsNotKept) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  const auto failed = create(options, "a", 1000, [](std::span<std::byte>) -> Status { return fail(ErrorCode::kCorrupt, "no"); });
  EXPECT_EQ(failed.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(files_in(options.folder), 0u);
}

TEST(CacheFile, WhatAKilledProcessLeftGoesAway) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  ASSERT_TRUE(create(options, "a", 1000, filled_with(1)));
  for (const char* name : {"0123.cache.AbCdEf", "4567.cache.GhIjKl"}) std::ofstream(options.folder / name) << "part";
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  std::filesystem::last_write_time(options.folder / "0123.cache.AbCdEf", old);
  ASSERT_TRUE(create(options, "b", 1000, filled_with(2)));
  EXPECT_FALSE(std::filesystem::exists(options.folder / "0123.cache.AbCdEf"));
  EXPECT_TRUE(std::filesystem::exists(options.folder / "4567.cache.GhIjKl"));
}

TEST(CacheFile, KeepsTheFolderWithinItsLimit) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder, 5'000'000);
  ASSERT_TRUE(create(options, "old", 50'000, filled_with(1)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(create(options, "new", 50'000, filled_with(2)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(open(options, "old", 50'000));  // now the more recently used
  ASSERT_TRUE(create(options, "third", 50'000, filled_with(3)));
  EXPECT_TRUE(open(options, "old", 50'000));
  EXPECT_FALSE(open(options, "new", 50'000));
  EXPECT_TRUE(open(options, "third", 50'000));
  EXPECT_EQ(create(options, "huge", 4'000'000, filled_with(4)).error().code, ErrorCode::kExhausted);
}

TEST(CacheFile, NoRoomOnTheDiskIsAnErrorThatLeavesNothing) {
  const testing::TemporaryFolder folder;
  const auto options = options_in(folder);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const auto made = create(options, "a", 1 << 20, filled_with(7));
  ThreadPool pool(2);
  const std::vector<std::byte> data(1 << 20);
  const auto stored = CacheFile::store(options, "a", data, pool);
  std::signal(SIGXFSZ, old);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(made || stored);
  EXPECT_EQ(made.error().code, ErrorCode::kExhausted) << made.error().message;
  EXPECT_EQ(stored.error().code, ErrorCode::kExhausted) << stored.error().message;
  EXPECT_EQ(files_in(options.folder), 0u);
}

}  // namespace
}  // namespace weir
