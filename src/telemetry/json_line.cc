// SPDX-License-Identifier: Apache-2.0
#include "telemetry/json_line.h"

#include <fmt/core.h>

#include <cmath>

namespace weir::telemetry {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the well-formed character at the start of `text` (Unicode, table 3-7), 0 if it is none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto within = [&](std::size_t i, unsigned low, unsigned high) { return byte(i) >= low && byte(i) <= high; };
  const auto tail = [&](std::size_t i) { return within(i, 0x80, 0xBF); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) return within(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && tail(2) ? 3 : 0;
  if (lead >= 0xF0 && lead <= 0xF4) return within(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) && tail(2) && tail(3) ? 4 : 0;
  return 0;
}

void append_ascii(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  else
    out += c;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 1)
      append_ascii(out, text.front());
    else
      out += size == 0 ? kReplacement : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out += '"';
}

std::string_view cut_text(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

std::string& JsonLine::raw(std::string_view name) {
  if (!first_) out_ += ',';
  first_ = false;
  append_json_string(out_, name);
  out_ += ':';
  return out_;
}

void JsonLine::text(std::string_view name, std::string_view value) { append_json_string(raw(name), value); }
void JsonLine::number(std::string_view name, std::int64_t value) { raw(name) += fmt::format("{}", value); }
void JsonLine::number(std::string_view name, double value, int decimals) {
  raw(name) += fmt::format("{:.{}f}", std::isfinite(value) ? value : 0.0, decimals);
}
void JsonLine::truth(std::string_view name, bool value) { raw(name) += value ? "true" : "false"; }

}  // namespace weir::telemetry
