// SPDX-License-Identifier: Apache-2.0
#include "http/trace_context.h"

#include <fmt/core.h>

#include <algorithm>

namespace weir::http {
namespace {

bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) { return is_lower_hex(text) && text.find_first_not_of('0') != std::string_view::npos; }

int hex_value(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  // version "-" trace-id "-" parent-id "-" flags; a version after 00 may go on behind another "-".
  constexpr std::size_t kSize = 2 + 1 + 32 + 1 + 16 + 1 + 2;
  if (header.size() < kSize || header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
  const std::string_view version = header.substr(0, 2);
  if (!is_lower_hex(version) || version == "ff") return std::nullopt;
  if (header.size() > kSize && (version == "00" || header[kSize] != '-')) return std::nullopt;
  const std::string_view trace = header.substr(3, 32), span = header.substr(36, 16), flags = header.substr(53, 2);
  if (!is_id(trace) || !is_id(span) || !is_lower_hex(flags)) return std::nullopt;
  return TraceContext{std::string(trace), std::string(span), (hex_value(flags[1]) & 1) != 0};
}

std::string format_traceparent(const TraceContext& context) {
  return fmt::format("00-{}-{}-{}", context.trace_id, context.span_id, context.sampled ? "01" : "00");
}

std::string make_trace_id(std::uint64_t high, std::uint64_t low) {
  return fmt::format("{:016x}{:016x}", high, low | (high == 0 && low == 0));
}

std::string make_span_id(std::uint64_t bits) { return fmt::format("{:016x}", bits | (bits == 0)); }

}  // namespace weir::http
