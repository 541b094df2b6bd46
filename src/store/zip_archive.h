// SPDX-License-Identifier: Apache-2.0
// Reads single members of a ZIP file (a Python wheel is one): stored or deflated, no ZIP64, no encryption. The archive
// is mapped and the member streamed out in pieces, so that no size in the file ever sizes an allocation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace weir::store {

struct ZipMember {
  std::string name;
  std::uint16_t method = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t packed_size = 0, size = 0;
  std::uint64_t header_offset = 0;
};

class ZipArchive {
 public:
  static Result<ZipArchive> open(const std::filesystem::path& path);
  static Result<ZipArchive> parse(std::span<const std::byte> bytes);  // the bytes must outlive the archive

  const std::vector<ZipMember>& members() const { return members_; }
  const ZipMember* find(std::string_view name) const;

  using Sink = std::function<Status(std::span<const std::byte>)>;
  // Passes the member's content to `sink`; afterwards its size and CRC have been checked, before that nothing is sure.
  Status extract(const ZipMember& member, const Sink& sink) const;

 private:
  Result<std::span<const std::byte>> packed_bytes(const ZipMember& member) const;

  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::vector<ZipMember> members_;
};

}  // namespace weir::store
