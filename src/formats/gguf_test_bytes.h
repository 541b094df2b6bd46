// SPDX-License-Identifier: Apache-2.0
// For tests: GGUF files spelled out byte by byte, without the writer, so that they can be wrong in every way.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::formats {

template <class T>
std::string raw(T value) {
  std::string text(sizeof(T), '\0');
  std::memcpy(text.data(), &value, sizeof(T));
  return text;
}
inline std::string u8(std::uint8_t value) { return raw(value); }
inline std::string u32(std::uint32_t value) { return raw(value); }
inline std::string u64(std::uint64_t value) { return raw(value); }
inline std::string str(std::string_view text) { return u64(text.size()) + std::string(text); }

inline std::string entry(std::string_view key, std::uint32_t type, const std::string& value) { return str(key) + u32(type) + value; }
inline std::string u32_entry(std::string_view key, std::uint32_t value) { return entry(key, 4, u32(value)); }
inline std::string array_entry(std::string_view key, std::uint32_t element, std::uint64_t count, const std::string& values) {
  return entry(key, 9, u32(element) + u64(count) + values);
}

// Dimensions innermost first, as in the file.
inline std::string tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset) {
  std::string text = str(name) + u32(static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t d : dims) text += u64(d);
  return text + u32(type) + u64(offset);
}

struct GgufParts {
  std::vector<std::string> entries, tensors;
  std::size_t data = 0;  // bytes after the padding
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  std::string bytes() const { return bytes(tensors.size(), entries.size()); }
  std::string bytes(std::uint64_t tensor_count, std::uint64_t entry_count) const {
    std::string text = "GGUF" + u32(version) + u64(tensor_count) + u64(entry_count);
    for (const auto& e : entries) text += e;
    for (const auto& t : tensors) text += t;
    if (data == 0) return text;
    text.resize((text.size() + alignment - 1) / alignment * alignment);
    for (std::size_t i = 0; i < data; ++i) text += static_cast<char>(i * 7 + 1);
    return text;
  }
};

inline std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace weir::formats
