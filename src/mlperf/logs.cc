// SPDX-License-Identifier: Apache-2.0
#include "mlperf/logs.h"

#include <algorithm>

#include "base/file_io.h"

namespace weir::mlperf {
namespace {

constexpr std::string_view kPrefix = ":::MLLOG ";
constexpr std::size_t kMaxLog = std::size_t{8} << 30, kMaxListed = 1u << 16;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

Result<std::string> from_hex(std::string_view hex, std::string_view what) {
  if (hex.size() % 2 != 0) return fail(ErrorCode::kCorrupt, "{} has an odd number of hex digits", what);
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return fail(ErrorCode::kCorrupt, "{} is not hex", what);
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::string shown(const json::Value& value) { return value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value); }

void take_line(std::string_view line, DetailLog& log) {
  const auto parsed = json::parse(line, "a log line");
  if (!parsed || !parsed->is_object()) return;
  const json::Object& object = parsed->get_object();
  const json::Value *key = json::find(object, "key"), *value = object.if_contains("value"), *metadata = json::find(object, "metadata");
  if (!key || !key->is_string() || !value) return;
  const std::string name(key->get_string());
  if (metadata && metadata->is_object()) {
    const auto marked = [&](const char* mark) {
      const json::Value* v = metadata->get_object().if_contains(mark);
      return v && v->is_bool() && v->get_bool();
    };
    if (marked("is_error")) log.errors.push_back(name + ": " + shown(*value));
    if (marked("is_warning")) log.warnings.push_back(name + ": " + shown(*value));
  }
  log.values[name] = *value;
}

}  // namespace

const json::Value* DetailLog::find(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? nullptr : &found->second;
}

double DetailLog::number(std::string_view key, double fallback) const {
  const json::Value* value = find(key);
  return value && value->is_number() ? value->to_number<double>() : fallback;
}

std::string DetailLog::text(std::string_view key) const {
  const json::Value* value = find(key);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

bool DetailLog::flag(std::string_view key) const {
  const json::Value* value = find(key);
  return value && value->is_bool() && value->get_bool();
}

Result<DetailLog> parse_detail(std::string_view text) {
  DetailLog log;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(kPrefix) && line.size() <= kMaxListed) take_line(line.substr(kPrefix.size()), log);
  }
  if (log.values.empty()) return fail(ErrorCode::kCorrupt, "no line of it is one of LoadGen's detail log");
  return log;
}

Result<DetailLog> read_detail(const std::filesystem::path& folder) {
  WEIR_ASSIGN(const std::string text, read_file(folder / kDetailLog, kMaxLog));
  auto log = parse_detail(text);
  if (!log) return fail(log.error().code, "{}: {}", (folder / kDetailLog).string(), log.error().message);
  return log;
}

Result<std::vector<LoggedAnswer>> parse_accuracy(std::string_view text) {
  WEIR_ASSIGN(const json::Value root, json::parse(text, kAccuracyLog, {.max_bytes = kMaxLog, .max_depth = 8}));
  if (!root.is_array()) return fail(ErrorCode::kCorrupt, "{} is no list", kAccuracyLog);
  std::vector<LoggedAnswer> answers;
  for (const json::Value& value : root.get_array()) {
    WEIR_ASSIGN(const json::Object* object, json::as_object(value, kAccuracyLog));
    WEIR_ASSIGN(const std::int64_t sequence, json::get_int(*object, "seq_id"));
    WEIR_ASSIGN(const std::int64_t sample, json::get_int(*object, "qsl_idx"));
    if (sequence < 0 || sample < 0) return fail(ErrorCode::kCorrupt, "{}: a sample's number is negative", kAccuracyLog);
    LoggedAnswer answer;
    answer.sequence = static_cast<std::uint64_t>(sequence);
    answer.sample = static_cast<std::uint64_t>(sample);
    WEIR_ASSIGN(const std::string data, json::get_string(*object, "data"));
    WEIR_ASSIGN(answer.data, from_hex(data, "data"));
    WEIR_ASSIGN(const std::string first, json::get_string_or(*object, "token_data", ""));
    WEIR_ASSIGN(answer.first_token, from_hex(first, "token_data"));
    WEIR_ASSIGN(answer.tokens, json::get_int_or(*object, "token_count", -1));
    answers.push_back(std::move(answer));
  }
  return answers;
}

Result<std::vector<LoggedAnswer>> read_accuracy(const std::filesystem::path& folder) {
  WEIR_ASSIGN(const std::string text, read_file(folder / kAccuracyLog, kMaxLog));
  return parse_accuracy(text);
}

}  // namespace weir::mlperf
