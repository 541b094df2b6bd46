// SPDX-License-Identifier: Apache-2.0
#include "eval/token_cases.h"

#include <algorithm>
#include <array>

#include "base/file_io.h"

namespace weir::eval {
namespace {

struct Field {
  std::string_view key;
  tokenizer::EncodeOptions options;
};

std::array<Field, 4> fields(bool parse_special) {
  return {{{"ids_plain", {.add_special = false, .parse_special = false}},
           {"ids_special", {.add_special = false, .parse_special = true}},
           {"ids_special_addbos", {.add_special = true, .parse_special = true}},
           {"ids", {.add_special = false, .parse_special = parse_special}}}};
}

std::string difference(std::span<const TokenId> found, const json::Array& wanted, std::string_view key) {
  std::size_t at = 0;
  while (at < found.size() && at < wanted.size() && wanted[at].is_int64() && wanted[at].get_int64() == found[at]) ++at;
  if (at == found.size() && at == wanted.size()) return {};
  const std::string got = at < found.size() ? fmt::format("{}", found[at]) : "the end";
  return fmt::format("{}: {} ids instead of {}; id {} is {}", key, found.size(), wanted.size(), at, got);
}

// Compares one line; returns how many fields it held.
Result<int> run_line(const tokenizer::Tokenizer& tokenizer, const json::Object& entry, bool parse_special, CaseResult& result) {
  WEIR_ASSIGN(const std::string text, json::get_string(entry, "text"));
  int checked = 0;
  for (const Field& field : fields(parse_special)) {
    const json::Value* wanted = json::find(entry, field.key);
    if (!wanted) continue;
    if (!wanted->is_array()) return fail(ErrorCode::kCorrupt, "'{}' should be an array", field.key);
    ++checked;
    const std::vector<TokenId> found = tokenizer.encode(text, field.options);
    const std::string why = difference(found, wanted->get_array(), field.key);
    if (!why.empty() && result.detail.empty()) result.detail = why;
    WEIR_ASSIGN(const bool round_trip, json::get_bool_or(entry, "roundtrip", false));
    if (round_trip && field.key == "ids_plain" && tokenizer.decode(found) != text && result.detail.empty())
      result.detail = "decoding does not give the text back";
  }
  result.ok = result.detail.empty();
  return checked;
}

}  // namespace

Result<FileReport> run_token_cases(const tokenizer::Tokenizer& tokenizer, const std::filesystem::path& file, bool parse_special) {
  FileReport report{.file = file.string(), .format = "tokens"};
  WEIR_ASSIGN(const std::string content, read_file(file));
  std::int64_t comparisons = 0, line_number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = std::string_view(content).substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", file.string(), line_number);
    WEIR_ASSIGN(const json::Value value, json::parse(line, where));
    WEIR_ASSIGN(const json::Object* entry, json::as_object(value, where));
    CaseResult result{.name = fmt::format("line {}", line_number)};
    auto checked = run_line(tokenizer, *entry, parse_special, result);
    if (!checked) return std::unexpected(std::move(checked.error()).with_context(where));
    if (*checked == 0) return fail(ErrorCode::kCorrupt, "{}: has none of ids_plain, ids_special, ids_special_addbos, ids", where);
    comparisons += *checked;
    report.add(std::move(result));
  }
  report.summary = {{"texts", report.cases.size()}, {"comparisons", comparisons}};
  return report;
}

}  // namespace weir::eval
