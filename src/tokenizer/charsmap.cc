// SPDX-License-Identifier: Apache-2.0
// A unit of the array holds: bit 31 and the low byte, the label to compare; bit 8, whether a value hangs below; bits 10–30, the
// offset to the children, times 256 when bit 9 is set. A value is a unit whose low 31 bits are an offset into the strings.
#include "tokenizer/charsmap.h"

#include <cstring>

namespace weir::tokenizer {

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  std::uint32_t size = 0;
  if (bytes.size() < sizeof size) return fail(ErrorCode::kCorrupt, "the precompiled charsmap has {} bytes", bytes.size());
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size > bytes.size() || size % sizeof(std::uint32_t) != 0) {
    return fail(ErrorCode::kCorrupt, "the precompiled charsmap's trie has {} bytes of {}", size, bytes.size());
  }
  Charsmap map;
  map.units_.resize(size / sizeof(std::uint32_t));
  std::memcpy(map.units_.data(), bytes.data(), size);
  map.replacements_ = bytes.substr(size);
  if (!map.replacements_.empty() && map.replacements_.back() != '\0')
    return fail(ErrorCode::kCorrupt, "the precompiled charsmap's last string does not end");
  return map;
}

std::optional<Charsmap::Replacement> Charsmap::replace(std::string_view text) const {
  if (units_.empty()) return std::nullopt;
  const auto children = [](std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  std::optional<Replacement> best;
  std::size_t node = children(units_[0]);
  for (std::size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || (units_[node] & (1u << 31 | 0xFF)) != byte) break;
    const bool has_value = units_[node] >> 8 & 1;
    node ^= children(units_[node]);
    if (!has_value) continue;
    if (node >= units_.size()) break;
    const std::size_t offset = units_[node] & ~(1u << 31);
    if (offset < replacements_.size()) best = Replacement{replacements_.data() + offset, i + 1};
  }
  return best;
}

}  // namespace weir::tokenizer
