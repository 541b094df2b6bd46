// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/json_normalizer.h"

#include <algorithm>

#include "base/log.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxSteps = 32, kMaxText = 64 << 20;  // bytes that steps may let a text grow to

Result<BertOptions> parse_bert(const json::Object& object) {
  BertOptions options;
  WEIR_ASSIGN(options.clean_text, json::get_bool_or(object, "clean_text", true));
  WEIR_ASSIGN(options.split_cjk, json::get_bool_or(object, "handle_chinese_chars", true));
  WEIR_ASSIGN(options.lowercase, json::get_bool_or(object, "lowercase", true));
  WEIR_ASSIGN(options.strip_accents, json::get_bool_or(object, "strip_accents", options.lowercase));
  return options;
}

template <class Change>
void change_characters(std::string& text, Change change) {
  std::u32string out;
  out.reserve(text.size());
  for (char32_t code : to_utf32(text)) change(code, out);
  text = to_utf8(out);
}

void strip(std::string& text, bool left, bool right) {
  std::u32string_view all;
  const std::u32string codes = to_utf32(text);
  all = codes;
  while (left && !all.empty() && is_space(all.front())) all.remove_prefix(1);
  while (right && !all.empty() && is_space(all.back())) all.remove_suffix(1);
  if (all.size() != codes.size()) text = to_utf8(all);
}

}  // namespace

Result<Pattern> Pattern::parse(const json::Value& value, std::string_view what) {
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, what));
  if (object->size() != 1) return fail(ErrorCode::kUnsupported, "{}: a pattern that is not one of String and Regex", what);
  if (const json::Value* literal = json::find(*object, "String"); literal && literal->is_string()) {
    if (literal->get_string().empty()) return fail(ErrorCode::kUnsupported, "{}: an empty pattern", what);
    return Pattern(std::string(literal->get_string()));
  }
  if (const json::Value* regex = json::find(*object, "Regex"); regex && regex->is_string()) {
    WEIR_ASSIGN(Regex compiled, Regex::compile(regex->get_string()));
    return Pattern(std::move(compiled));
  }
  return fail(ErrorCode::kUnsupported, "{}: a pattern that is not one of String and Regex", what);
}

std::optional<Regex::Match> Pattern::find(std::string_view text, std::size_t from) const {
  if (const Regex* expression = regex()) return expression->find(text, from);
  const std::size_t at = text.find(*literal(), from);
  if (at == std::string_view::npos) return std::nullopt;
  return Regex::Match{at, at + literal()->size()};
}

std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content) {
  std::string out;
  const std::size_t most = text.size() * 64 + (1 << 20);
  std::size_t done = 0, from = 0;
  while (from <= text.size()) {
    const auto match = pattern.find(text, from);
    if (!match || out.size() + content.size() > most) break;
    out += text.substr(done, match->begin - done);
    out += content;
    done = from = match->end;
    if (match->end == match->begin) from += from < text.size() ? utf8_length(text[from]) : 1;
  }
  out += text.substr(done);
  return out;
}

Result<JsonNormalizer> JsonNormalizer::parse(const json::Value* value) {
  JsonNormalizer normalizer;
  if (value) WEIR_TRY(normalizer.add(*value, 0));
  return normalizer;
}

Status JsonNormalizer::add(const json::Value& value, int depth) {
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "normalizer"));
  WEIR_ASSIGN(const std::string type, json::get_string(*object, "type"));
  if (type == "Sequence") {
    const json::Value* list = json::find(*object, "normalizers");
    if (!list || !list->is_array()) return fail(ErrorCode::kCorrupt, "a normalizer Sequence without a list of normalizers");
    if (depth == kMaxDepth) return fail(ErrorCode::kUnsupported, "normalizers nested {} deep", depth);
    for (const json::Value& inner : list->get_array()) WEIR_TRY(add(inner, depth + 1));
    return {};
  }
  if (steps_.size() == kMaxSteps) return fail(ErrorCode::kUnsupported, "more than {} normalizers", kMaxSteps);
  WEIR_ASSIGN(Step step, parse_step(*object, type));
  steps_.push_back(std::move(step));
  return {};
}

Result<JsonNormalizer::Step> JsonNormalizer::parse_step(const json::Object& object, std::string_view type) {
  if (type == "NFC") return NormalForm::kNfc;
  if (type == "NFD") return NormalForm::kNfd;
  if (type == "NFKC") return NormalForm::kNfkc;
  if (type == "NFKD") return NormalForm::kNfkd;
  if (type == "Lowercase") return Lowercase{};
  if (type == "StripAccents") return StripAccents{};
  if (type == "BertNormalizer") return parse_bert(object);
  if (type == "Strip") {
    Strip step{};
    WEIR_ASSIGN(step.left, json::get_bool_or(object, "strip_left", true));
    WEIR_ASSIGN(step.right, json::get_bool_or(object, "strip_right", true));
    return step;
  }
  if (type == "Prepend") {
    WEIR_ASSIGN(std::string text, json::get_string(object, "prepend"));
    return Prepend{std::move(text)};
  }
  if (type == "Replace") {
    const json::Value* pattern = json::find(object, "pattern");
    if (!pattern) return fail(ErrorCode::kCorrupt, "a Replace normalizer without a pattern");
    WEIR_ASSIGN(Pattern compiled, Pattern::parse(*pattern, "the Replace normalizer"));
    WEIR_ASSIGN(std::string content, json::get_string(object, "content"));
    return Replace{std::move(compiled), std::move(content)};
  }
  return fail(ErrorCode::kUnsupported, "the normalizer \"{}\" is not supported", type);
}

void JsonNormalizer::apply(std::string& text) const {
  const std::size_t most = std::max(kMaxText, text.size() * 4);
  for (const Step& step : steps_) {
    if (text.size() > most) return log::warn("the normalizer of a tokenizer.json gave up on a text that grew to {} bytes", text.size());
    apply_step(step, text);
  }
}

void JsonNormalizer::apply_step(const Step& step, std::string& text) {
  if (const auto* form = std::get_if<NormalForm>(&step)) {
    const bool ascii = std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (!ascii) text = to_utf8(normalize(to_utf32(text), *form));
  } else if (std::holds_alternative<Lowercase>(step)) {
    change_characters(text, append_lower);
  } else if (std::holds_alternative<StripAccents>(step)) {
    change_characters(text, [](char32_t code, std::u32string& out) {
      if (!library_mark(code)) out += code;
    });
  } else if (const auto* sides = std::get_if<Strip>(&step)) {
    strip(text, sides->left, sides->right);
  } else if (const auto* prepend = std::get_if<Prepend>(&step)) {
    if (!text.empty()) text.insert(0, prepend->text);
  } else if (const auto* replace = std::get_if<Replace>(&step)) {
    text = replace_all(text, replace->pattern, replace->content);
  } else {
    text = to_utf8(bert_normalize(to_utf32(text), std::get<BertOptions>(step)));
  }
}

}  // namespace weir::tokenizer
