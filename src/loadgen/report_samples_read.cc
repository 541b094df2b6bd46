// SPDX-License-Identifier: Apache-2.0
// Samples read back, from files that anybody may have written: each number is bounded so that no sum of them overflows later.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/file_io.h"
#include "loadgen/distribution.h"
#include "loadgen/report_samples.h"

namespace weir::loadgen {
namespace {

constexpr std::uint64_t kMaxText = 2ull << 30;
constexpr double kLongest = 1e8;  // seconds; three years
constexpr std::int64_t kMostTokens = 100'000'000'000, kMostLevels = 10000;

Result<std::string> unpack(std::string_view bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return fail(ErrorCode::kExhausted, "cannot start unpacking");
  std::string out;
  std::array<char, 64u << 10> piece;
  int state = Z_OK;
  std::size_t at = 0;
  while (state == Z_OK && out.size() <= kMaxText) {
    if (stream.avail_in == 0) {
      const std::size_t some = std::min<std::size_t>(bytes.size() - at, 1u << 20);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
      stream.avail_in = static_cast<uInt>(some);
      at += some;
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > kMaxText) return fail(ErrorCode::kExhausted, "more than {} bytes when unpacked", kMaxText);
  if (state != Z_STREAM_END) return fail(ErrorCode::kCorrupt, "not a whole gzip file");
  return out;
}

Result<Duration> time_of(double seconds) {
  if (!(std::abs(seconds) <= kLongest)) return fail(ErrorCode::kCorrupt, "a time of {} s", seconds);
  return Duration(static_cast<std::int64_t>(std::llround(seconds * 1e9)));
}

Status take_gap(RequestRecord& r, Duration& sum, double seconds) {
  WEIR_ASSIGN(const Duration gap, time_of(seconds));
  sum += gap;
  if (gap < Duration::zero() || to_seconds(sum) > kLongest) return fail(ErrorCode::kCorrupt, "gaps of an impossible length");
  r.gaps.push_back(gap);
  return {};
}

Result<Outcome> outcome_of(std::string_view name) {
  for (int i = 0; i < kOutcomes; ++i)
    if (outcome_name(static_cast<Outcome>(i)) == name) return static_cast<Outcome>(i);
  return fail(ErrorCode::kCorrupt, "an outcome that there is not");
}

struct TimeField {
  std::string_view name;
  Duration RequestRecord::* member;
};
constexpr TimeField kTimes[] = {
    {"scheduled_s", &RequestRecord::scheduled},   {"eligible_s", &RequestRecord::eligible}, {"started_s", &RequestRecord::started},
    {"connected_s", &RequestRecord::connected},   {"sent_s", &RequestRecord::sent},         {"first_token_s", &RequestRecord::first_token},
    {"last_token_s", &RequestRecord::last_token}, {"done_s", &RequestRecord::done}};
struct CountField {
  std::string_view name;
  std::int64_t RequestRecord::* member;
};
constexpr CountField kCounts[] = {{"prompt_tokens", &RequestRecord::prompt_tokens},
                                  {"output_tokens", &RequestRecord::output_tokens},
                                  {"cached_tokens", &RequestRecord::cached_tokens},
                                  {"events", &RequestRecord::events}};
struct SecondsField {
  std::string_view name;
  double RequestRecord::* member;
};
constexpr SecondsField kSeconds[] = {
    {"queue_s", &RequestRecord::queue_s}, {"prefill_s", &RequestRecord::prefill_s}, {"decode_s", &RequestRecord::decode_s}};

// A row whose fields `text_of` gives as text ("" where there is none).
template <class TextOf>
Result<std::pair<std::size_t, RequestRecord>> record_of(TextOf&& text_of) {
  RequestRecord r;
  const auto number = [&](std::string_view name, double fallback) -> Result<double> {
    const std::string_view text = text_of(name);
    return text.empty() ? Result<double>(fallback) : parse_number(text, name);
  };
  const auto whole = [&](std::string_view name, std::int64_t fallback, std::int64_t most) -> Result<std::int64_t> {
    WEIR_ASSIGN(const double value, number(name, static_cast<double>(fallback)));
    if (!(value >= static_cast<double>(fallback) && value <= static_cast<double>(most)))
      return fail(ErrorCode::kCorrupt, "'{}' is not possible", name);
    return static_cast<std::int64_t>(value);
  };
  WEIR_ASSIGN(const std::int64_t level, whole("level", 0, kMostLevels - 1));
  WEIR_ASSIGN(const std::int64_t conversation, whole("conversation", 0, 0xffffffff));
  WEIR_ASSIGN(const std::int64_t turn, whole("turn", 0, 0xffff));
  WEIR_ASSIGN(const std::int64_t status, whole("status", 0, 999));
  r.conversation = static_cast<std::uint32_t>(conversation);
  r.turn = static_cast<std::uint16_t>(turn);
  r.status = static_cast<std::int16_t>(status);
  WEIR_ASSIGN(r.outcome, outcome_of(text_of("outcome")));
  for (const TimeField& field : kTimes) {
    const std::string_view text = text_of(field.name);
    if (text.empty()) continue;
    WEIR_ASSIGN(const double seconds, parse_number(text, field.name));
    WEIR_ASSIGN(r.*(field.member), time_of(seconds));
  }
  for (const CountField& field : kCounts) {
    WEIR_ASSIGN(r.*(field.member), whole(field.name, field.name == "events" ? 0 : -1, kMostTokens));
  }
  for (const SecondsField& field : kSeconds) {
    WEIR_ASSIGN(const double seconds, number(field.name, -1));
    r.*(field.member) = std::isfinite(seconds) && seconds <= kLongest ? seconds : -1;
  }
  const std::string_view hash = text_of("answer_hash");
  std::from_chars(hash.data(), hash.data() + hash.size(), r.answer_hash, 16);
  return std::pair(static_cast<std::size_t>(level), std::move(r));
}

// An answer that is there has its moments in order: metrics take differences.
Status check(const RequestRecord& r) {
  if (r.outcome == Outcome::kOk && (r.done == kNever || r.sent == kNever || r.started == kNever))
    return fail(ErrorCode::kCorrupt, "an answered request without its moments");
  if ((r.first_token == kNever) != (r.last_token == kNever)) return fail(ErrorCode::kCorrupt, "a first token without a last one");
  return {};
}

Result<std::pair<std::size_t, RequestRecord>> parse_csv_row(std::string_view line, const std::vector<std::string_view>& header) {
  const std::vector<std::string_view> cells = split(line, ',');
  if (cells.size() != header.size()) return fail(ErrorCode::kCorrupt, "{} cells instead of {}", cells.size(), header.size());
  const auto text_of = [&](std::string_view name) {
    const auto found = std::find(header.begin(), header.end(), name);
    return found == header.end() ? std::string_view() : cells[static_cast<std::size_t>(found - header.begin())];
  };
  WEIR_ASSIGN(auto row, record_of(text_of));
  Duration sum{};
  if (const std::string_view gaps = text_of("gaps_s"); !gaps.empty())
    for (const std::string_view gap : split(gaps, ';')) {
      WEIR_ASSIGN(const double seconds, parse_number(gap, "gaps_s"));
      WEIR_TRY(take_gap(row.second, sum, seconds));
    }
  return row;
}

Result<std::pair<std::size_t, RequestRecord>> parse_json_row(std::string_view line) {
  WEIR_ASSIGN(const json::Value value, json::parse(line, "samples", {.max_bytes = 256u << 20, .max_depth = 8}));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "samples"));
  std::string held[32];
  std::size_t next = 0;
  const auto text_of = [&](std::string_view name) -> std::string_view {
    const json::Value* member = json::find(*object, name);
    if (!member) return {};
    if (member->is_string()) return member->get_string();
    if (!member->is_number() || next == std::size(held)) return {};
    return held[next++] = fmt::format("{}", member->to_number<double>());
  };
  WEIR_ASSIGN(auto row, record_of(text_of));
  Duration sum{};
  if (const json::Value* gaps = json::find(*object, "gaps_s"); gaps && gaps->is_array())
    for (const json::Value& gap : gaps->get_array()) {
      WEIR_ASSIGN(const double seconds, json::to_double(gap, "gaps_s"));
      WEIR_TRY(take_gap(row.second, sum, seconds));
    }
  return row;
}

void finish(RunResult& result) {
  std::stable_sort(result.records.begin(), result.records.end(), [](const auto& a, const auto& b) { return a.scheduled < b.scheduled; });
  for (const RequestRecord& record : result.records) result.length = std::max(result.length, record.done);
  result.offered = static_cast<std::int64_t>(result.records.size());
}

}  // namespace

Result<std::vector<RunResult>> parse_samples(std::string_view text, SampleFormat format) {
  std::vector<RunResult> levels;
  std::vector<std::string_view> header;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (format == SampleFormat::kCsv && header.empty()) {
      header = split(line, ',');
      continue;
    }
    auto row = format == SampleFormat::kCsv ? parse_csv_row(line, header) : parse_json_row(line);
    if (!row) return std::unexpected(std::move(row).error().with_context(fmt::format("line {}", number)));
    if (auto fine = check(row->second); !fine) return std::unexpected(std::move(fine).error().with_context(fmt::format("line {}", number)));
    if (levels.size() <= row->first) levels.resize(row->first + 1);
    levels[row->first].records.push_back(std::move(row->second));
  }
  for (RunResult& level : levels) finish(level);
  return levels;
}

Result<std::vector<RunResult>> read_samples(const std::filesystem::path& path) {
  WEIR_ASSIGN(const SampleKind kind, SampleKind::of(path));
  WEIR_ASSIGN(std::string text, read_file(path, kMaxText));
  if (kind.gzip) {
    auto plain = unpack(text);
    if (!plain) return std::unexpected(std::move(plain).error().with_context(path.string()));
    text = std::move(*plain);
  }
  auto levels = parse_samples(text, kind.format);
  if (!levels) return std::unexpected(std::move(levels).error().with_context(path.string()));
  return levels;
}

}  // namespace weir::loadgen
