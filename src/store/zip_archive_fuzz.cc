// SPDX-License-Identifier: Apache-2.0
// Any bytes as a ZIP file: parsed, and every member read. Nothing but errors may come of it.
#include <cstddef>
#include <cstdint>

#include "store/zip_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto archive = weir::store::ZipArchive::parse(std::as_bytes(std::span(data, size)));
  if (!archive) return 0;
  for (const weir::store::ZipMember& member : archive->members())
    (void)archive->extract(member, [](std::span<const std::byte>) -> weir::Status { return {}; });
  return 0;
}
