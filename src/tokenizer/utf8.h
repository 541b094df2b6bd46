// SPDX-License-Identifier: Apache-2.0
// UTF-8 in and out. Text from outside may be broken: each maximal ill-formed part (Unicode 16, section 3.9, "maximal
// subparts") becomes one U+FFFD, once, at the door; behind it everything may rely on valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::tokenizer {

inline constexpr char32_t kReplacement = 0xFFFD;

struct Utf8Char {
  char32_t code = kReplacement;
  std::uint8_t size = 1;  // bytes; of the maximal subpart when ill-formed
  bool valid = false;
  bool unfinished = false;  // ill-formed only because the text ends here
};

// The character at the start of a text that is not empty.
Utf8Char decode_utf8(std::string_view text);

void append_utf8(char32_t code, std::string& out);

// How many bytes at the start are valid.
std::size_t valid_utf8_prefix(std::string_view text);

// The text itself when it is valid, else its repair, which `buffer` holds.
std::string_view repair_utf8(std::string_view text, std::string& buffer);

// Bytes in the character that a valid lead byte starts.
inline std::size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The code of the character at `at`, where the text is known to be valid.
inline char32_t code_of_valid_utf8(const char* at) {
  const auto* b = reinterpret_cast<const unsigned char*>(at);
  if (b[0] < 0x80) return b[0];
  if (b[0] < 0xE0) return char32_t((b[0] & 0x1F) << 6 | (b[1] & 0x3F));
  if (b[0] < 0xF0) return char32_t((b[0] & 0x0F) << 12 | (b[1] & 0x3F) << 6 | (b[2] & 0x3F));
  return char32_t((b[0] & 0x07) << 18 | (b[1] & 0x3F) << 12 | (b[2] & 0x3F) << 6 | (b[3] & 0x3F));
}

std::u32string to_utf32(std::string_view valid);
std::string to_utf8(std::u32string_view text);

}  // namespace weir::tokenizer
