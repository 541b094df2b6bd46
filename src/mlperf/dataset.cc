// SPDX-License-Identifier: Apache-2.0
#include "mlperf/dataset.h"

#include <algorithm>
#include <limits>

#include "base/file_io.h"
#include "base/sha256.h"

namespace weir::mlperf {
namespace {

constexpr std::size_t kMaxFile = std::size_t{4} << 30, kMaxLine = 64u << 20, kMaxSamples = 10'000'000;

Result<std::vector<TokenId>> parse_tokens(const json::Value& value) {
  if (!value.is_array() || value.get_array().empty()) return fail(ErrorCode::kInvalidArgument, "'tokens' is no list of ids");
  std::vector<TokenId> tokens;
  for (const json::Value& v : value.get_array()) {
    WEIR_ASSIGN(const std::int64_t id, json::to_int(v, "a token id"));
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) return fail(ErrorCode::kInvalidArgument, "{} is no token id", id);
    tokens.push_back(static_cast<TokenId>(id));
  }
  return tokens;
}

Result<Sample> parse_sample(std::string_view line, const std::string& where) {
  WEIR_ASSIGN(const json::Value value, json::parse(line, where));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, where));
  Sample sample;
  int kinds = 0;
  if (const json::Value* tokens = json::find(*object, "tokens"); tokens && ++kinds) {
    WEIR_ASSIGN(sample.tokens, parse_tokens(*tokens));
  }
  if (const json::Value* messages = json::find(*object, "messages"); messages && ++kinds) {
    if (!messages->is_array() || messages->get_array().empty()) return fail(ErrorCode::kInvalidArgument, "'messages' is no list");
    sample.messages = messages->get_array();
  }
  if (json::find(*object, "prompt") && ++kinds) {
    WEIR_ASSIGN(sample.prompt, json::get_string(*object, "prompt"));
    if (sample.prompt.empty()) return fail(ErrorCode::kInvalidArgument, "'prompt' is empty");
  }
  if (kinds != 1) return fail(ErrorCode::kInvalidArgument, "a sample has one of 'prompt', 'messages' and 'tokens'");
  if (json::find(*object, "answer")) {
    WEIR_ASSIGN(sample.answer, json::get_string(*object, "answer"));
  }
  return sample;
}

}  // namespace

bool Dataset::has_answers() const {
  return !samples.empty() && std::ranges::all_of(samples, [](const Sample& s) { return s.answer.has_value(); });
}

Result<Dataset> parse_dataset(std::string_view text, std::string_view name) {
  Dataset set;
  set.name = name;
  Sha256 digest;
  digest.update(std::as_bytes(std::span(text)));
  set.sha256 = digest.hex();
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}, line {}", name, number);
    if (line.size() > kMaxLine || set.samples.size() >= kMaxSamples)
      return fail(ErrorCode::kInvalidArgument, "{}: a line holds at most {} bytes, a data set {} samples", where, kMaxLine, kMaxSamples);
    auto sample = parse_sample(line, where);
    if (!sample) return fail(sample.error().code, "{}: {}", where, sample.error().message);
    set.samples.push_back(std::move(*sample));
  }
  if (set.samples.empty()) return fail(ErrorCode::kInvalidArgument, "{} holds no samples", name);
  return set;
}

Result<Dataset> read_dataset(const std::filesystem::path& path) {
  WEIR_ASSIGN(const std::string text, read_file(path, kMaxFile));
  return parse_dataset(text, path.filename().string());
}

}  // namespace weir::mlperf
