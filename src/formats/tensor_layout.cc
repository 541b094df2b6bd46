// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_layout.h"

#include <algorithm>
#include <limits>

namespace weir::formats {

std::string in_quotes(std::string_view name) {
  constexpr std::size_t kShown = 120;
  std::string text = "'";
  for (const char c : name.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  return text + (name.size() > kShown ? "…'" : "'");
}

Result<std::uint64_t> tensor_bytes(DType type, std::span<const std::int64_t> shape) {
  const DTypeInfo& info = dtype_info(type);
  const std::int64_t cols = shape.empty() ? 1 : shape.back();
  if (cols % info.block_size != 0)
    return fail(ErrorCode::kCorrupt, "rows of {} elements are no multiple of the {} elements of a {} block", cols, info.block_size,
                info.name);
  // Below 2^62 so that sums of sizes and byte counts fit as well.
  constexpr auto kLimit = std::numeric_limits<std::int64_t>::max() / 2;
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t d : shape) {
    if (d < 0) return fail(ErrorCode::kCorrupt, "dimension {} is negative", d);
    if (d == 0) {
      empty = true;
    } else if (product > kLimit / d) {
      return fail(ErrorCode::kCorrupt, "its dimensions multiply to more than any file holds");
    } else {
      product *= d;
    }
  }
  const std::int64_t blocks = product / info.block_size;
  if (blocks > kLimit / info.block_bytes) return fail(ErrorCode::kCorrupt, "its dimensions multiply to more than any file holds");
  return empty ? 0 : static_cast<std::uint64_t>(blocks * info.block_bytes);
}

Overlap find_overlap(std::vector<Region>& regions) {
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  const Region* last = nullptr;
  for (const Region& region : regions) {
    if (region.begin == region.end) continue;
    if (last && region.begin < last->end) return {true, last->entry, region.entry};
    last = &region;
  }
  return {};
}

}  // namespace weir::formats
