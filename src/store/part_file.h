// SPDX-License-Identifier: Apache-2.0
// A download on its way: NAME.part beside the target, with NAME.part.json saying which version of which URL it is. It
// takes the final name only through finish(), when its content has been checked; until then it can be continued.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/sha256.h"

namespace weir::store {

struct PartOrigin {
  std::string url_sha256;              // of the URL asked for: it may be signed, so it is not kept itself
  std::string etag;                    // a strong one, or empty
  std::string server_sha256;           // what the server said the whole file has, or empty
  std::optional<std::uint64_t> total;  // bytes of the whole file
  std::uint64_t synced = 0;            // bytes known to have reached the disk
};

class PartFile {
 public:
  // Opens or creates the part and reads its origin; a part of another URL is emptied.
  static Result<PartFile> open(const std::filesystem::path& target, const std::string& url_sha256);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  std::uint64_t size() const { return size_; }
  const PartOrigin& origin() const { return origin_; }
  Status set_origin(PartOrigin origin);  // saved at once

  Status append(std::span<const std::byte> bytes);  // kExhausted when the disk or a quota is full
  Status truncate(std::uint64_t size);
  Status park();                 // sync, and note how much is safe: called when a transfer ends early
  Result<std::string> sha256();  // of the content; reads the part of earlier runs once
  Status finish();               // sync, rename to the target, remove the origin
  void discard();                // removes part and origin

 private:
  PartFile(std::filesystem::path target, int fd) : target_(std::move(target)), fd_(fd) {}
  std::filesystem::path part_path() const { return target_.string() + ".part"; }
  std::filesystem::path origin_path() const { return target_.string() + ".part.json"; }
  Status load_origin(const std::string& url_sha256);
  Status hash_existing();

  std::filesystem::path target_;
  int fd_;
  std::uint64_t size_ = 0, hashed_ = 0;
  Sha256 digest_;
  PartOrigin origin_;
};

}  // namespace weir::store
