// SPDX-License-Identifier: Apache-2.0
// A file mapped read-only. Weights are used where they lie: pages come in as they are touched, processes share them,
// and the kernel may drop them. The map outlives every view into it, so holders keep a shared_ptr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

struct stat;

namespace weir {

class MappedFile {
 public:
  // Maps the whole file; an empty file gives an empty span. kNotFound or kIo on failure.
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);

  // A part of the file read into private, page-aligned memory, for data that does not lie where it could be used in place.
  // Costs its size in memory, so it is the exception.
  static Result<std::shared_ptr<const MappedFile>> read_part(const std::filesystem::path& path, std::uint64_t offset, std::size_t length);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Path, device, inode, size and times when it was mapped: the same text, the same content, but for a change within the grain of
  // the times. Two files never share one.
  const std::string& identity() const { return identity_; }
  bool unchanged() const;     // the file of that name still has this identity
  bool just_changed() const;  // so lately that one more change might leave the times as they are

  // Asks the kernel to read these bytes from the disk now.
  void prefetch(std::size_t offset, std::size_t length) const;

  // Tells the kernel that these bytes will not be needed soon, so that they leave resident memory. Copies stay.
  void release(std::size_t offset, std::size_t length) const;

 private:
  MappedFile(std::filesystem::path path, const struct stat& info, const std::byte* data, std::size_t size, bool copy);

  std::filesystem::path path_;
  const std::byte* data_;
  std::size_t size_;
  bool copy_;
  std::string identity_;
  std::int64_t changed_s_;  // of the system's clock
};

}  // namespace weir
