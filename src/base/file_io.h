// SPDX-License-Identifier: Apache-2.0
// Small files whole, and the one way this project writes data: to a temporary name beside the target, synced, renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir {

// The whole file as bytes. kExhausted when it is larger than `limit`.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t limit = 256u << 20);

// Replaces `path` by these bytes atomically; a crash or a full disk leaves the old content or none, never a part.
Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// The same for content that comes in pieces: write(), then commit(). Without commit the temporary file is removed.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::filesystem::path& target);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  std::uint64_t written() const { return written_; }
  Status commit();  // sync, rename over the target, sync the folder

 private:
  AtomicFile(std::filesystem::path target, std::filesystem::path temporary, int fd)
      : target_(std::move(target)), temporary_(std::move(temporary)), fd_(fd) {}

  std::filesystem::path target_, temporary_;
  int fd_ = -1;
  std::uint64_t written_ = 0;
};

// Makes a rename in `folder` durable.
Status sync_folder(const std::filesystem::path& folder);

}  // namespace weir
