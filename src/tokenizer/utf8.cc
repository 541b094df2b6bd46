// SPDX-License-Identifier: Apache-2.0
// Decoding follows table 3-7 of the Unicode standard: only the second byte's range depends on the first.
#include "tokenizer/utf8.h"

#include <cstring>

namespace weir::tokenizer {
namespace {

struct Lead {
  std::uint8_t size, second_min, second_max;  // size 0: not a lead byte
};

Lead lead_of(unsigned char byte) {
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1, true, false};
  const Lead lead = lead_of(byte(0));
  if (lead.size == 0) return {};
  char32_t code = byte(0) & (0xFFu >> (lead.size + 1));
  for (std::uint8_t i = 1; i < lead.size; ++i) {
    if (i == text.size()) return {kReplacement, i, false, true};
    const std::uint8_t low = i == 1 ? lead.second_min : 0x80, high = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {kReplacement, i, false, false};
    code = code << 6 | (byte(i) & 0x3F);
  }
  return {code, lead.size, true, false};
}

void append_utf8(char32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t word;
    while (at + sizeof word <= text.size()) {  // eight ASCII bytes at a time
      std::memcpy(&word, text.data() + at, sizeof word);
      if (word & 0x8080808080808080u) break;
      at += sizeof word;
    }
    if (at == text.size()) break;
    const Utf8Char c = decode_utf8(text.substr(at));
    if (!c.valid) return at;
    at += c.size;
  }
  return at;
}

std::string_view repair_utf8(std::string_view text, std::string& buffer) {
  std::size_t good = valid_utf8_prefix(text);
  if (good == text.size()) return text;
  buffer.clear();
  buffer.reserve(text.size() + 64);
  while (true) {
    buffer.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) return buffer;
    append_utf8(kReplacement, buffer);
    text.remove_prefix(decode_utf8(text).size);
    good = valid_utf8_prefix(text);
  }
}

std::u32string to_utf32(std::string_view valid) {
  std::u32string out;
  out.reserve(valid.size());
  for (std::size_t at = 0; at < valid.size(); at += utf8_length(valid[at])) out += code_of_valid_utf8(valid.data() + at);
  return out;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char32_t c : text) append_utf8(c, out);
  return out;
}

}  // namespace weir::tokenizer
