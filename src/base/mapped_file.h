// SPDX-License-Identifier: Apache-2.0
// A file mapped read-only. Weights are used where they lie: pages come in as they are touched, processes share them,
// and the kernel may drop them. The map outlives every view into it, so holders keep a shared_ptr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"

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

  // Tells the kernel that these bytes will not be needed soon, so that they leave resident memory. Copies stay.
  void release(std::size_t offset, std::size_t length) const;

 private:
  MappedFile(std::filesystem::path path, const std::byte* data, std::size_t size, bool copy)
      : path_(std::move(path)), data_(data), size_(size), copy_(copy) {}

  std::filesystem::path path_;
  const std::byte* data_;
  std::size_t size_;
  bool copy_;
};

}  // namespace weir
