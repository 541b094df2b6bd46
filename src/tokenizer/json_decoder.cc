// SPDX-License-Identifier: Apache-2.0
// Each step maps a list of texts to a list of texts; the results are joined.
#include "tokenizer/json_decoder.h"

#include <algorithm>

#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

namespace weir::tokenizer {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxSteps = 32, kMaxReplaced = 1 << 16;  // bytes of a token that is still rewritten

void replace_literal(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
}

// Spaces that WordPiece puts before punctuation and English contractions.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kChanges) replace_literal(text, from, to);
}

std::vector<std::string> join_byte_tokens(const std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (valid_utf8_prefix(bytes) == bytes.size()) {
      out.push_back(bytes);
    } else {
      std::string bad;
      for (std::size_t i = 0; i < bytes.size(); ++i) append_utf8(kReplacement, bad);
      out.push_back(std::move(bad));
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const auto byte = parse_byte_token(token)) {
      bytes += static_cast<char>(*byte);
    } else {
      flush();
      out.push_back(token);
    }
  }
  flush();
  return out;
}

std::string strip_ends(std::string_view token, std::string_view content, std::size_t start, std::size_t stop) {
  for (; start > 0 && token.starts_with(content); --start) token.remove_prefix(content.size());
  for (; stop > 0 && token.ends_with(content); --stop) token.remove_suffix(content.size());
  return std::string(token);
}

}  // namespace

Result<JsonDecoder> JsonDecoder::parse(const json::Value* value) {
  JsonDecoder decoder;
  if (value) {
    WEIR_TRY(decoder.add(*value, 0));
  } else {
    decoder.steps_.emplace_back(Spaces{});
  }
  return decoder;
}

Status JsonDecoder::add(const json::Value& value, int depth) {
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "decoder"));
  WEIR_ASSIGN(const std::string type, json::get_string(*object, "type"));
  if (type == "Sequence") {
    const json::Value* list = json::find(*object, "decoders");
    if (!list || !list->is_array()) return fail(ErrorCode::kCorrupt, "a decoder Sequence without a list of decoders");
    if (depth == kMaxDepth) return fail(ErrorCode::kUnsupported, "decoders nested {} deep", depth);
    for (const json::Value& inner : list->get_array()) WEIR_TRY(add(inner, depth + 1));
    return {};
  }
  if (steps_.size() == kMaxSteps) return fail(ErrorCode::kUnsupported, "more than {} decoders", kMaxSteps);
  WEIR_ASSIGN(Step step, parse_step(*object, type));
  steps_.push_back(std::move(step));
  return {};
}

Result<JsonDecoder::Step> JsonDecoder::parse_step(const json::Object& object, std::string_view type) {
  if (type == "ByteLevel") return ByteLevel{};
  if (type == "ByteFallback") return ByteFallback{};
  if (type == "Fuse") return Fuse{};
  if (type == "Metaspace") {
    WEIR_ASSIGN(std::string replacement, json::get_string(object, "replacement"));
    if (replacement.empty()) return fail(ErrorCode::kCorrupt, "a Metaspace decoder without a replacement");
    WEIR_ASSIGN(const bool legacy, json::get_bool_or(object, "add_prefix_space", true));
    WEIR_ASSIGN(const std::string scheme, json::get_string_or(object, "prepend_scheme", legacy ? "always" : "never"));
    return Metaspace{std::move(replacement), scheme != "never"};
  }
  if (type == "WordPiece") {
    WEIR_ASSIGN(std::string prefix, json::get_string_or(object, "prefix", "##"));
    WEIR_ASSIGN(const bool cleanup, json::get_bool_or(object, "cleanup", true));
    return WordPiece{std::move(prefix), cleanup};
  }
  if (type == "Strip") {
    WEIR_ASSIGN(std::string content, json::get_string(object, "content"));
    WEIR_ASSIGN(const std::int64_t start, json::get_int_or(object, "start", 0));
    WEIR_ASSIGN(const std::int64_t stop, json::get_int_or(object, "stop", 0));
    if (content.empty() || start < 0 || stop < 0) return fail(ErrorCode::kCorrupt, "a Strip decoder that makes no sense");
    return Strip{std::move(content), static_cast<std::size_t>(start), static_cast<std::size_t>(stop)};
  }
  if (type == "Replace") {
    const json::Value* pattern = json::find(object, "pattern");
    if (!pattern) return fail(ErrorCode::kCorrupt, "a Replace decoder without a pattern");
    WEIR_ASSIGN(Pattern compiled, Pattern::parse(*pattern, "the Replace decoder"));
    WEIR_ASSIGN(std::string content, json::get_string(object, "content"));
    return Replace{std::move(compiled), std::move(content)};
  }
  if (type == "BPEDecoder") {
    WEIR_ASSIGN(std::string suffix, json::get_string_or(object, "suffix", "</w>"));
    if (suffix.empty()) return fail(ErrorCode::kUnsupported, "a BPEDecoder without a suffix");
    return Suffix{std::move(suffix)};
  }
  return fail(ErrorCode::kUnsupported, "the decoder \"{}\" is not supported", type);
}

void JsonDecoder::apply(const Step& step, std::vector<std::string>& tokens) {
  if (std::holds_alternative<ByteLevel>(step)) {
    std::string bytes;
    for (const std::string& token : tokens) bytes += bytes_of_alphabet(token).value_or(token);
    std::string repaired;
    tokens.assign(1, std::string(repair_utf8(bytes, repaired)));
  } else if (std::holds_alternative<Fuse>(step)) {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.assign(1, std::move(all));
  } else if (std::holds_alternative<ByteFallback>(step)) {
    tokens = join_byte_tokens(tokens);
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (const auto* space = std::get_if<Metaspace>(&step)) {
      replace_literal(token, space->replacement, i == 0 && space->strips_first ? "" : " ");
    } else if (const auto* words = std::get_if<WordPiece>(&step)) {
      if (i > 0 && token.starts_with(words->prefix)) {
        token.erase(0, words->prefix.size());
      } else if (i > 0) {
        token.insert(0, " ");
      }
      if (words->cleanup) clean_up(token);
    } else if (const auto* strip = std::get_if<Strip>(&step)) {
      token = strip_ends(token, strip->content, strip->start, strip->stop);
    } else if (const auto* replace = std::get_if<Replace>(&step)) {
      if (token.size() <= kMaxReplaced) token = replace_all(token, replace->pattern, replace->content);
    } else if (const auto* suffix = std::get_if<Suffix>(&step)) {
      replace_literal(token, suffix->suffix, i + 1 == tokens.size() ? "" : " ");
    } else if (std::holds_alternative<Spaces>(step)) {
      if (i > 0) token.insert(0, " ");
    }
  }
}

std::string JsonDecoder::decode(std::span<const std::string_view> token_texts) const {
  std::vector<std::string> tokens(token_texts.begin(), token_texts.end());
  for (const Step& step : steps_) apply(step, tokens);
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

std::string JsonDecoder::bytes_of(std::string_view token) const {
  std::string text(token);
  for (const Step& step : steps_) {
    if (std::holds_alternative<ByteLevel>(step)) {
      text = bytes_of_alphabet(text).value_or(text);
    } else if (std::holds_alternative<ByteFallback>(step)) {
      if (const auto byte = parse_byte_token(text)) return std::string(1, static_cast<char>(*byte));
    } else if (const auto* space = std::get_if<Metaspace>(&step)) {
      replace_literal(text, space->replacement, " ");
    } else if (const auto* words = std::get_if<WordPiece>(&step)) {
      if (text.starts_with(words->prefix)) {
        text.erase(0, words->prefix.size());
      } else {
        text.insert(0, " ");
      }
    } else if (const auto* replace = std::get_if<Replace>(&step)) {
      if (text.size() <= kMaxReplaced) text = replace_all(text, replace->pattern, replace->content);
    } else if (const auto* suffix = std::get_if<Suffix>(&step)) {
      replace_literal(text, suffix->suffix, " ");
    } else if (std::holds_alternative<Spaces>(step)) {
      text.insert(0, " ");
    }
  }
  return text;
}

bool JsonDecoder::strips_leading_space() const {
  return std::ranges::any_of(steps_, [](const Step& step) {
    if (const auto* space = std::get_if<Metaspace>(&step)) return space->strips_first;
    if (const auto* strip = std::get_if<Strip>(&step)) return strip->content == " " && strip->start > 0;
    return std::holds_alternative<WordPiece>(step) || std::holds_alternative<Spaces>(step);
  });
}

}  // namespace weir::tokenizer
