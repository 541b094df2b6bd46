// SPDX-License-Identifier: Apache-2.0
// Numbered strings with lookup by text: one arena, one open-addressing table of numbers. A vocabulary has hundreds of
// thousands of short texts, so no allocation for each.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tokenizer {

inline std::uint64_t hash_bytes(const char* data, std::size_t size) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  std::uint64_t hash = size * kMultiplier;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 29;
  };
  std::uint64_t word = 0;
  for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
    std::memcpy(&word, data, sizeof word);
    mix(word);
  }
  word = 0;
  std::memcpy(&word, data, size);
  mix(word);
  return hash ^ hash >> 32;
}

class StringTable {
 public:
  static constexpr std::int32_t kNone = -1;

  StringTable() { slots_.assign(16, kNone); }

  void reserve(std::size_t count);
  std::int32_t size() const { return static_cast<std::int32_t>(ends_.size()); }

  // Appends and returns its number. Of equal texts find() gives the one added last.
  std::int32_t add(std::string_view text);
  // Appends a text that find() does not know.
  std::int32_t add_hidden(std::string_view text);
  std::int32_t find(std::string_view text) const;
  std::int32_t find_or_add(std::string_view text) {
    const std::int32_t found = find(text);
    return found != kNone ? found : add(text);
  }
  std::string_view text(std::int32_t number) const {
    const std::size_t begin = number == 0 ? 0 : ends_[static_cast<std::size_t>(number) - 1];
    return std::string_view(arena_).substr(begin, ends_[static_cast<std::size_t>(number)] - begin);
  }

 private:
  std::size_t slot_of(std::string_view text) const;
  void rehash(std::size_t slots);

  std::string arena_;
  std::vector<std::size_t> ends_;
  std::vector<std::int32_t> slots_;  // a power of two of them, at most half full
  std::size_t used_ = 0;
};

}  // namespace weir::tokenizer
