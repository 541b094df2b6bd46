// SPDX-License-Identifier: Apache-2.0
// Derived data on disk: made once, mapped or copied by later starts. A file is named by a hash of its key and holds the key
// itself and a checksum of its content, so that a clash, an old version or damage is a miss, never a wrong answer. It is written
// under a temporary name, then renamed. The folder is bounded: the least recently used files go first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/page_mover.h"
#include "base/result.h"
#include "base/thread_pool.h"

namespace weir {

class CacheFile {
 public:
  struct Options {
    std::filesystem::path folder;
    std::uint64_t limit_bytes = 0;  // of all files in the folder together; a larger file is not kept
  };

  // The data made under this key before. Marks the file as used. The checksum is verified by all threads of the pool; copy_into()
  // does it while the data passes through the cache. kNotFound when there is none, kCorrupt when it is damaged.
  static Result<CacheFile> open(const Options& options, std::string_view key, std::uint64_t bytes, ThreadPool& pool);
  static Status copy_into(const Options& options, std::string_view key, std::span<std::byte> out, ThreadPool& pool);

  // Makes room by removing old files, lets `fill` write `bytes` bytes to the file's mapping, and keeps them unless it fails.
  // kExhausted when the disk has no room or the limit is too small.
  using Fill = std::function<Status(std::span<std::byte>)>;
  static Result<CacheFile> create(const Options& options, std::string_view key, std::uint64_t bytes, const Fill& fill, ThreadPool& pool);
  // The same for data that lies in memory already.
  static Status store(const Options& options, std::string_view key, std::span<const std::byte> data, ThreadPool& pool);

  std::span<const std::byte> data() const { return data_; }
  std::shared_ptr<const void> owner() const { return owner_; }  // keeps the mapping
  AlignedMap map() const { return {owner_, data_}; }            // for a PageMover

 private:
  std::span<const std::byte> data_;
  std::shared_ptr<const void> owner_;
};

}  // namespace weir
