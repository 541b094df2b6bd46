// SPDX-License-Identifier: Apache-2.0
// What a large file holds, as a digest that all threads make together, and a small index that remembers it: a file that has not
// changed since is not read again, a copy or another name of it has the same digest.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/thread_pool.h"

namespace weir {

// SHA-256 over the SHA-256 of each piece of 4 MiB, as hexadecimal digits. Pages are given back as they have been read.
std::string digest_of(const MappedFile& file, ThreadPool& pool);

// Digests by MappedFile::identity(). The index is a text file of bounded size; losing it, or a line of it to another process that
// writes at the same time, costs only the work.
class DigestIndex {
 public:
  explicit DigestIndex(std::filesystem::path file) : file_(std::move(file)) {}

  std::optional<std::string> find(std::string_view identity) const;
  Status remember(std::string_view identity, std::string_view digest) const;

 private:
  std::filesystem::path file_;
};

// From the index, else by reading the file; remembers it, unless the file was changed so lately that a further change might not
// show in its times. kCorrupt when the file changes meanwhile.
Result<std::string> remembered_digest(const MappedFile& file, const DigestIndex& index, ThreadPool& pool);

}  // namespace weir
