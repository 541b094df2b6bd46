// SPDX-License-Identifier: Apache-2.0
// The "normalizer" of a tokenizer.json: steps that rewrite the text before it is cut. A step that is not known is an error.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tokenizer/bert_text.h"
#include "tokenizer/regex.h"
#include "tokenizer/unicode.h"

namespace weir::tokenizer {

// What to look for in a text: a literal or an expression.
class Pattern {
 public:
  // {"String": …} or {"Regex": …}.
  static Result<Pattern> parse(const json::Value& value, std::string_view what);
  explicit Pattern(std::string literal) : how_(std::move(literal)) {}
  explicit Pattern(Regex regex) : how_(std::move(regex)) {}

  std::optional<Regex::Match> find(std::string_view text, std::size_t from) const;
  const std::string* literal() const { return std::get_if<std::string>(&how_); }
  const Regex* regex() const { return std::get_if<Regex>(&how_); }

 private:
  std::variant<std::string, Regex> how_;
};

// All matches replaced, up to a size that only a hostile file reaches (64 times the text and a megabyte): the rest stays as it is.
std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content);

class JsonNormalizer {
 public:
  static Result<JsonNormalizer> parse(const json::Value* value);  // null: no steps

  bool empty() const { return steps_.empty(); }
  void apply(std::string& text) const;

 private:
  struct Lowercase {};
  struct StripAccents {};
  struct Strip {
    bool left, right;
  };
  struct Prepend {
    std::string text;
  };
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  using Step = std::variant<NormalForm, Lowercase, StripAccents, Strip, Prepend, Replace, BertOptions>;

  Status add(const json::Value& value, int depth);
  Result<Step> parse_step(const json::Object& object, std::string_view type);
  static void apply_step(const Step& step, std::string& text);

  std::vector<Step> steps_;
};

}  // namespace weir::tokenizer
