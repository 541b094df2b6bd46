// SPDX-License-Identifier: Apache-2.0
#include "loadgen/trace.h"

#include <algorithm>
#include <optional>

#include "base/file_io.h"
#include "base/json.h"
#include "loadgen/distribution.h"

namespace weir::loadgen {
namespace {

constexpr std::int64_t kMaxTokens = 100'000'000;
constexpr std::size_t kMaxBlocks = 1u << 20;

// Days from 1970-01-01 (Howard Hinnant's civil-day arithmetic); the month is 1..12.
std::int64_t days_from_civil(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2;
  const std::int64_t era = year / 400, in_era = year - era * 400;
  const std::int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

// "2023-11-16 18:17:03.9799600", up to nine digits of a second, perhaps with a zone behind that is the same in all lines.
std::optional<std::int64_t> parse_timestamp(std::string_view text) {
  const auto number = [&](std::size_t at, std::size_t digits) -> std::int64_t {
    std::int64_t value = 0;
    for (std::size_t i = at; i < at + digits; ++i) {
      if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  // Nanoseconds since 1970 fit 64 bits until 2262.
  const std::int64_t year = number(0, 4), month = number(5, 2), day = number(8, 2), hour = number(11, 2), minute = number(14, 2),
                     second = number(17, 2);
  if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
      second < 0 || second > 60)
    return std::nullopt;
  std::int64_t nanoseconds = 0, unit = 100'000'000;
  if (text.size() > 19 && text[19] == '.')
    for (std::size_t i = 20; i < text.size() && text[i] >= '0' && text[i] <= '9' && unit > 0; ++i, unit /= 10)
      nanoseconds += (text[i] - '0') * unit;
  return (((days_from_civil(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1'000'000'000 + nanoseconds;
}

struct Raw {
  std::int64_t at_ns = 0;
  TraceEntry entry;
};

Result<Raw> parse_csv_line(std::string_view line) {
  const auto fields = split(line, ',');
  if (fields.size() < 3) return fail(ErrorCode::kCorrupt, "three fields are wanted: TIMESTAMP,ContextTokens,GeneratedTokens");
  const auto at = parse_timestamp(fields[0]);
  if (!at) return fail(ErrorCode::kCorrupt, "'{}' is no time like 2023-11-16 18:17:03.9799600", fields[0]);
  Raw raw{.at_ns = *at, .entry = {}};
  WEIR_ASSIGN(raw.entry.input_tokens, parse_count(fields[1], "ContextTokens", 0, kMaxTokens));
  WEIR_ASSIGN(raw.entry.output_tokens, parse_count(fields[2], "GeneratedTokens", 0, kMaxTokens));
  return raw;
}

Result<Raw> parse_json_line(std::string_view line) {
  WEIR_ASSIGN(const json::Value value, json::parse(line, "trace"));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "trace"));
  WEIR_ASSIGN(const double at_ms, json::get_double(*object, "timestamp"));
  Raw raw;
  WEIR_ASSIGN(raw.entry.input_tokens, json::get_int(*object, "input_length"));
  WEIR_ASSIGN(raw.entry.output_tokens, json::get_int(*object, "output_length"));
  if (!(at_ms >= 0 && at_ms < 1e14)) return fail(ErrorCode::kCorrupt, "timestamp is out of range");
  if (raw.entry.input_tokens < 0 || raw.entry.input_tokens > kMaxTokens || raw.entry.output_tokens < 0 ||
      raw.entry.output_tokens > kMaxTokens)
    return fail(ErrorCode::kCorrupt, "lengths are 0 to {}", kMaxTokens);
  raw.at_ns = static_cast<std::int64_t>(at_ms * 1e6);
  if (const json::Value* ids = json::find(*object, "hash_ids"); ids && ids->is_array()) {
    if (ids->get_array().size() > kMaxBlocks) return fail(ErrorCode::kCorrupt, "hash_ids is too long");
    for (const json::Value& id : ids->get_array()) {
      WEIR_ASSIGN(const std::int64_t number, json::to_int(id, "hash_ids"));
      raw.entry.prefix_blocks.push_back(number);
    }
  }
  return raw;
}

}  // namespace

Result<Trace> parse_trace(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return fail(ErrorCode::kCorrupt, "the trace is empty");
  const bool jsonl = text[first] == '{';
  std::vector<Raw> raws;
  std::size_t number = 0;
  for (std::string_view line : split(text.substr(first), '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (!jsonl && number == 1 && (line[0] < '0' || line[0] > '9'))) continue;  // the names of the columns
    auto raw = jsonl ? parse_json_line(line) : parse_csv_line(line);
    if (!raw) return std::unexpected(std::move(raw).error().with_context(fmt::format("line {}", number)));
    raws.push_back(std::move(*raw));
  }
  if (raws.empty()) return fail(ErrorCode::kCorrupt, "the trace has no requests");
  std::stable_sort(raws.begin(), raws.end(), [](const Raw& a, const Raw& b) { return a.at_ns < b.at_ns; });
  Trace trace;
  for (Raw& raw : raws) {
    raw.entry.at = Duration(raw.at_ns - raws.front().at_ns);
    trace.entries.push_back(std::move(raw.entry));
  }
  return trace;
}

Result<Trace> read_trace(const std::filesystem::path& path) {
  WEIR_ASSIGN(const std::string text, read_file(path, 2ull << 30));
  auto trace = parse_trace(text);
  if (!trace) return std::unexpected(std::move(trace).error().with_context(path.string()));
  return trace;
}

Trace scaled(const Trace& trace, double speed, Duration length, std::size_t requests) {
  Trace out{.entries = {}, .block_tokens = trace.block_tokens};
  for (const TraceEntry& entry : trace.entries) {
    const Duration at = to_duration(to_seconds(entry.at) / speed);
    if ((length > Duration::zero() && at >= length) || (requests > 0 && out.entries.size() >= requests)) break;
    out.entries.push_back(entry);
    out.entries.back().at = at;
  }
  return out;
}

}  // namespace weir::loadgen
