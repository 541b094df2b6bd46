// SPDX-License-Identifier: Apache-2.0
// A file without a name, to measure a disk with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace weir::bench {

class ProbeFile {
 public:
  // `direct`: past the page cache if the file system can; is_direct() tells.
  static Result<ProbeFile> create(const std::filesystem::path& folder, bool direct);
  ProbeFile(ProbeFile&& other) noexcept;
  ProbeFile& operator=(ProbeFile&&) = delete;
  ~ProbeFile();

  // All of `block`, whose address, size and offset are multiples of 4096. A file system that refuses such a transfer past the cache loses
  // is_direct().
  Status write(std::span<const std::byte> block, std::uint64_t offset);
  Status read(std::span<std::byte> block, std::uint64_t offset);
  Status sync();  // fdatasync

  // So that the disk is read, and not the page cache: drops these bytes from it (0 = all). Nothing to do when is_direct().
  void forget(std::uint64_t offset, std::uint64_t bytes);
  void expect_random();  // no reading ahead
  bool is_direct() const { return direct_; }

 private:
  explicit ProbeFile(int fd) : fd_(fd) {}
  bool set_direct(bool on);
  template <class Call>
  Status transfer(const char* what, std::size_t bytes, Call call);

  int fd_ = -1;
  bool direct_ = false;
};

}  // namespace weir::bench
