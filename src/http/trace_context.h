// SPDX-License-Identifier: Apache-2.0
// W3C Trace Context: the traceparent header, read strictly and written. Ids are hex text, as exporters want them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

struct TraceContext {
  std::string trace_id;  // 32 hex digits in lower case, not all zero
  std::string span_id;   // 16, likewise: the caller's span, our parent
  bool sampled = false;
};

// Nothing for anything malformed: a broken header starts a new trace (section 4.2 of the recommendation).
std::optional<TraceContext> parse_traceparent(std::string_view header);
std::string format_traceparent(const TraceContext& context);

// Hex ids from random bits (never all zero).
std::string make_trace_id(std::uint64_t high, std::uint64_t low);
std::string make_span_id(std::uint64_t bits);

}  // namespace weir::http
