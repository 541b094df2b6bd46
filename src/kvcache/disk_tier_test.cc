// SPDX-License-Identifier: Apache-2.0
// The second tier: what memory gave up is found on disk, after a restart too; what is damaged, foreign or too much is not.
#include "kvcache/disk_tier.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing.h"
#include "kvcache/test_memory.h"

namespace weir::kvcache {
namespace {

namespace fs = std::filesystem;

std::vector<TokenId> counting(TokenId first, std::size_t count) {
  std::vector<TokenId> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

CacheOptions small_cache() {
  CacheOptions options;
  options.block_tokens = 4;
  options.groups = {{6, 0}};
  return options;
}

DiskTierOptions tier_in(const fs::path& folder, std::string identity = "model a, f32") {
  return {.folder = folder, .limit_bytes = 1 << 20, .identity = std::move(identity), .pool_bytes = {32, 8}, .queued_saves = 32};
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

// One process: a tier, a cache and its memory.
struct Process {
  Process(CacheOptions options, const DiskTierOptions& tier_options) : tier(DiskTier::open(tier_options).value()) {
    options.tier = tier.get();
    cache.emplace(options);
    memory.emplace(options);
  }
  std::int64_t serve(std::span<const TokenId> tokens, std::string_view salt = "") {
    SequenceCache s(*cache);
    const auto size = static_cast<std::int64_t>(tokens.size());
    EXPECT_TRUE(cache->open(s, tokens, size, salt));
    const std::int64_t found = s.computed();
    while (s.computed() < size) {
      const std::int64_t to = std::min(size, cache->next_checkpoint(s, s.computed()));
      cache->grow(s, to);
      std::vector<MemoryOp> ops;
      cache->take_ops(ops);
      apply(ops, *memory, tier.get());
      memory->begin_step();
      memory->run(s, tokens.first(static_cast<std::size_t>(to)), size, s.computed());
      cache->commit(s, tokens, to);
    }
    tier->flush();
    return found;
  }

  std::unique_ptr<DiskTier> tier;
  std::optional<Cache> cache;
  std::optional<TestMemory> memory;
};

TEST(DiskTier, GivesBackWhatMemoryGaveUp) {
  const testing::TemporaryFolder folder;
  Process p(small_cache(), tier_in(folder.path()));
  const auto prompt = counting(1, 21);
  EXPECT_EQ(p.serve(prompt), 0);
  EXPECT_EQ(p.serve(counting(100, 21)), 0);  // all six blocks are needed
  EXPECT_EQ(p.tier->stats().saved, 5u);
  EXPECT_EQ(p.serve(prompt), 20);  // the contents are checked by the memory
  EXPECT_EQ(p.cache->stats().loaded_blocks, 5);
  EXPECT_EQ(p.serve(prompt, "another tenant"), 0);
}

TEST(DiskTier, SurvivesARestartForTheSameModelOnly) {
  const testing::TemporaryFolder folder;
  const auto prompt = counting(1, 21);
  {
    Process p(small_cache(), tier_in(folder.path()));
    p.serve(prompt);
    p.serve(counting(100, 21));
  }
  Process again(small_cache(), tier_in(folder.path()));
  EXPECT_EQ(again.tier->stats().files, 5u);
  EXPECT_EQ(again.serve(prompt), 20);
  Process other(small_cache(), tier_in(folder.path(), "model a, f16"));
  EXPECT_EQ(other.serve(prompt), 0);
}

TEST(DiskTier, KeepsStatesOfRecurrentLayersAndWindowsToo) {
  const testing::TemporaryFolder folder;
  CacheOptions options;
  options.block_tokens = 4;
  options.groups = {{8, 0}, {6, 6}};
  options.state_slots = 2;
  options.checkpoint_blocks = 2;
  DiskTierOptions tier = tier_in(folder.path());
  tier.pool_bytes = {32, 32, 8};
  Process p(options, tier);
  const auto prompt = counting(1, 27);
  EXPECT_EQ(p.serve(prompt), 0);
  EXPECT_EQ(p.serve(counting(100, 30)), 0);
  EXPECT_EQ(p.serve(prompt), 24);
  EXPECT_GT(p.cache->stats().loaded_blocks, 6);
}

TEST(DiskTier, TakesADamagedFileForAMiss) {
  const testing::TemporaryFolder folder;
  const auto prompt = counting(1, 21);
  {
    Process p(small_cache(), tier_in(folder.path()));
    p.serve(prompt);
    p.serve(counting(100, 21));
  }
  const auto files = files_in(folder.path());
  ASSERT_EQ(files.size(), 5u);
  for (const fs::path& file : files) {  // one bit of the content
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-3, std::ios::end);
    const char byte = static_cast<char>(stream.get() ^ 4);
    stream.seekp(-3, std::ios::end);
    stream.put(byte);
  }
  Process again(small_cache(), tier_in(folder.path()));
  EXPECT_EQ(again.serve(prompt), 0);
  EXPECT_EQ(again.tier->stats().failed, 1u);
  EXPECT_EQ(again.tier->stats().files, 4u);
  EXPECT_EQ(again.serve(prompt), 20);
}

TEST(DiskTier, StaysWithinItsLimitAndGivesUpTheLeastRecentlyUsed) {
  const testing::TemporaryFolder folder;
  DiskTierOptions options = tier_in(folder.path());
  options.pool_bytes = {1000};
  options.limit_bytes = 4000;  // three files with their headers
  const auto tier = DiskTier::open(options).value();
  std::vector<std::string> keys;
  for (int i = 0; i < 4; ++i) {
    keys.push_back(tier->root_key(fmt::format("{}", i)));
    tier->save(0, keys.back(), std::vector<std::byte>(1000, std::byte(i)));
    tier->flush();
    EXPECT_TRUE(tier->load(0, keys[0]).has_value());  // the first stays in use
  }
  EXPECT_TRUE(tier->contains(0, keys[0]));
  EXPECT_FALSE(tier->contains(0, keys[1]));
  EXPECT_EQ(tier->load(0, keys[3]), std::vector<std::byte>(1000, std::byte(3)));
  EXPECT_EQ(files_in(folder.path()).size(), 3u);
  EXPECT_LE(tier->stats().bytes, 4000u);
}

TEST(DiskTier, RemovesWhatAKilledProcessLeftAndKeepsStrangersFiles) {
  const testing::TemporaryFolder folder;
  const fs::path stale = folder.path() / (std::string(64, 'a') + ".0.kv.Xy12Zq"), strange = folder.path() / "notes.txt";
  for (const fs::path& path : {stale, strange}) {
    std::ofstream(path) << "x";
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const auto tier = DiskTier::open(tier_in(folder.path())).value();
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(strange));
}

TEST(DiskTier, SaysWhyAFolderCannotBeUsed) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  const auto refused = DiskTier::open(tier_in(folder.path() / "file" / "tier"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace weir::kvcache
