// SPDX-License-Identifier: Apache-2.0
// Reads little-endian values from bytes that came from outside: each read says whether there was enough left.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace weir::formats {

class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

  template <class T>
  [[nodiscard]] bool read(T& value) {
    static_assert(std::endian::native == std::endian::little && std::is_trivially_copyable_v<T>);
    if (remaining() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  [[nodiscard]] bool take(std::uint64_t length, std::string_view& text) {
    if (length > remaining()) return false;
    text = {reinterpret_cast<const char*>(bytes_.data()) + position_, static_cast<std::size_t>(length)};
    position_ += static_cast<std::size_t>(length);
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace weir::formats
