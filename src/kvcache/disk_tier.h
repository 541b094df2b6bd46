// SPDX-License-Identifier: Apache-2.0
// The second tier: what the cache in memory gives up is kept on disk, one checksummed file for each block or state, bounded (the
// least recently used go first), and found again after a restart. A key is a SHA-256 over everything that the bytes depend on:
// identity, salt, all tokens so far. A thread of its own writes from a bounded queue, so that a step never waits for a write; what
// does not fit the queue is dropped. A folder serves one process at a time; another's files are at worst misses.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace weir::kvcache {

struct DiskTierOptions {
  std::filesystem::path folder;
  std::uint64_t limit_bytes = 0;          // of all files together
  std::string identity;                   // of model, KV type, layout and arithmetic: other bytes need another identity
  std::vector<std::uint64_t> pool_bytes;  // of one block of each group, then of one state
  std::size_t queued_saves = 32;
};

struct DiskTierStats {
  std::uint64_t files = 0, bytes = 0;  // now
  // Since the start: written; given back; given up as the queue was full; damaged, or refused by the system.
  std::uint64_t saved = 0, loaded = 0, dropped = 0, failed = 0;
};

class DiskTier {
 public:
  static Result<std::unique_ptr<DiskTier>> open(DiskTierOptions options);
  ~DiskTier();  // writes what is queued
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  // The key of a block by that of the block before it.
  std::string root_key(std::string_view salt) const;
  static std::string block_key(const std::string& parent, std::span<const TokenId> tokens, std::int32_t prefilled);

  bool contains(std::int32_t pool, const std::string& key) const;
  // The bytes, if they are there and undamaged.
  std::optional<std::vector<std::byte>> load(std::int32_t pool, const std::string& key);
  void save(std::int32_t pool, const std::string& key, std::vector<std::byte> bytes);
  void flush();  // waits until the queue is written

  std::uint64_t bytes(std::int32_t pool) const { return options_.pool_bytes[static_cast<std::size_t>(pool)]; }
  DiskTierStats stats() const;

 private:
  struct Save {
    std::string name;
    std::vector<std::byte> bytes;
  };
  struct File {
    std::string name;
    std::uint64_t bytes = 0;
  };
  using Files = std::list<File>;  // the least recently used first

  explicit DiskTier(DiskTierOptions options) : options_(std::move(options)) {}
  void read_folder();
  void write_queued();
  void write(const Save& save);
  void forget(const std::string& name);
  Files make_room(std::uint64_t bytes);
  std::filesystem::path path(const std::string& name) const { return options_.folder / name; }

  DiskTierOptions options_;
  mutable std::mutex mutex_;  // over all that follows
  std::condition_variable changed_;
  std::deque<Save> queue_;  // the first is being written
  bool ending_ = false;
  Files files_;
  std::unordered_map<std::string, Files::iterator> by_name_;
  DiskTierStats stats_;
  std::thread writer_;
};

}  // namespace weir::kvcache
