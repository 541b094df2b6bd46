// SPDX-License-Identifier: Apache-2.0
// GPT-2's alphabet: bytes 33–126, 161–172 and 174–255 are themselves, the other 68 are U+0100 onwards in order.
#include "tokenizer/vocabulary.h"

#include <fmt/core.h>

#include <array>

#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

struct Alphabet {
  std::array<char16_t, 256> character{};
  std::array<std::int16_t, 324> byte{};  // by character

  constexpr Alphabet() {
    byte.fill(-1);
    char16_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      character[static_cast<std::size_t>(b)] = printable ? static_cast<char16_t>(b) : next++;
      byte[character[static_cast<std::size_t>(b)]] = static_cast<std::int16_t>(b);
    }
  }
};
constexpr Alphabet kAlphabet;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void Vocabulary::reserve(std::size_t count) {
  texts_.reserve(count);
  scores_.reserve(count);
  kinds_.reserve(count);
}

TokenId Vocabulary::add(std::string_view text, float score, TokenKind kind) {
  scores_.push_back(score);
  kinds_.push_back(kind);
  return texts_.add(text);
}

TokenId Vocabulary::add_gap() {
  scores_.push_back(0);
  kinds_.push_back(TokenKind::kUnused);
  return texts_.add_hidden("");
}

char32_t byte_to_alphabet(std::uint8_t byte) { return kAlphabet.character[byte]; }

std::optional<std::string> bytes_of_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (!c.valid || c.code >= kAlphabet.byte.size() || kAlphabet.byte[c.code] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte[c.code]);
    text.remove_prefix(c.size);
  }
  return bytes;
}

std::string alphabet_of_bytes(std::string_view bytes) {
  std::string text;
  for (char b : bytes) append_utf8(byte_to_alphabet(static_cast<std::uint8_t>(b)), text);
  return text;
}

std::optional<std::uint8_t> parse_byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<std::uint8_t>(high << 4 | low);
}

std::string byte_token(std::uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

}  // namespace weir::tokenizer
