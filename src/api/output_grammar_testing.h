// SPDX-License-Identifier: Apache-2.0
// For this folder's tests only: a real vocabulary with the formats' marks as special tokens, a model that knows nothing and writes within
// a grammar, and a judge of instances.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "grammar/matcher.h"
#include "grammar/testing_vocabulary.h"

namespace weir::api::testing {

// The real words, and the marks of all formats as special tokens of their own.
class MarkedTokenizer final : public tokenizer::Tokenizer {
 public:
  explicit MarkedTokenizer(const tokenizer::Tokenizer& words) : tokenizer::Tokenizer(words), words_(words) {
    for (const std::string_view mark : {"[TOOL_CALLS]",
                                        "[ARGS]",
                                        "[CALL_ID]",
                                        "[THINK]",
                                        "[/THINK]",
                                        "<|channel|>",
                                        "<|message|>",
                                        "<|constrain|>",
                                        "<|start|>",
                                        "<|end|>",
                                        "<｜tool▁calls▁begin｜>",
                                        "<｜tool▁calls▁end｜>",
                                        "<｜tool▁call▁begin｜>",
                                        "<｜tool▁call▁end｜>",
                                        "<｜tool▁sep｜>",
                                        "<|tool_calls_section_begin|>",
                                        "<|tool_calls_section_end|>",
                                        "<|tool_call_begin|>",
                                        "<|tool_call_end|>",
                                        "<|tool_call_argument_begin|>",
                                        "<|tool_call|>",
                                        "<|tool_call_start|>",
                                        "<|tool_call_end|>",
                                        "<|START_ACTION|>",
                                        "<|END_ACTION|>",
                                        "<|START_THINKING|>",
                                        "<|END_THINKING|>",
                                        "<|tools_prefix|>",
                                        "<|tools_suffix|>",
                                        "<|inner_prefix|>",
                                        "<|inner_suffix|>",
                                        "<|function_call|>",
                                        "<|message_sep|>",
                                        "<|role_sep|>"}) {
      if (std::ranges::find(marks_, mark) == marks_.end()) marks_.emplace_back(mark);
    }
  }
  std::vector<TokenId> encode(std::string_view text, const tokenizer::EncodeOptions& options) const override {
    return words_.encode(text, options);
  }
  std::string decode(std::span<const TokenId> ids, bool special) const override {
    std::string text;
    for (const TokenId id : ids) text += token_bytes(id, special);
    return text;
  }
  std::string token_bytes(TokenId id, bool special) const override {
    if (id < words_.vocab_size()) return words_.token_bytes(id, special);
    return special ? std::string(token_text(id)) : "";
  }
  std::string_view token_text(TokenId id) const override {
    return id < words_.vocab_size() ? words_.token_text(id) : std::string_view(marks_[static_cast<std::size_t>(id - words_.vocab_size())]);
  }
  tokenizer::TokenKind kind(TokenId id) const override {
    return id < words_.vocab_size() ? words_.kind(id) : tokenizer::TokenKind::kControl;
  }
  std::optional<TokenId> find(std::string_view text) const override {
    const auto found = std::ranges::find(marks_, text);
    if (found == marks_.end()) return words_.find(text);
    return words_.vocab_size() + static_cast<TokenId>(found - marks_.begin());
  }
  std::int32_t vocab_size() const override { return words_.vocab_size() + static_cast<std::int32_t>(marks_.size()); }
  std::string description() const override { return "words and marks"; }

 private:
  const tokenizer::Tokenizer& words_;
  std::vector<std::string> marks_;
};

inline std::shared_ptr<const grammar::Vocabulary> vocabulary(bool special) {
  if (!special) return grammar::testing::smollm2_vocabulary();
  static const auto marked = [] {
    auto tokenizer = std::make_shared<MarkedTokenizer>(grammar::testing::smollm2());
    const std::int32_t size = tokenizer->vocab_size();
    return grammar::Vocabulary::create(std::move(tokenizer), size);
  }();
  return marked;
}

// A small judge: what the tests' schemas use.
inline bool is_instance(const json::Value& value, const json::Object& schema) {
  if (const json::Value* list = json::find(schema, "enum")) {
    return std::ranges::any_of(list->as_array(), [&](const json::Value& one) { return one == value; });
  }
  if (const json::Value* any = json::find(schema, "anyOf")) {
    return std::ranges::any_of(any->as_array(), [&](const json::Value& one) { return is_instance(value, one.as_object()); });
  }
  const json::Value* named = json::find(schema, "type");
  const std::string_view type = named ? std::string_view(named->as_string()) : "";
  if (type == "string") return value.is_string();
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_bool();
  if (type == "number") return value.is_number();
  if (type == "integer") {
    if (!value.is_int64() && !value.is_uint64()) return false;
    const json::Value* most = json::find(schema, "maximum");
    const json::Value* least = json::find(schema, "minimum");
    return (!most || *json::to_int(value, "") <= most->as_int64()) && (!least || *json::to_int(value, "") >= least->as_int64());
  }
  if (type == "array") {
    return value.is_array() &&
           std::ranges::all_of(value.as_array(), [&](const json::Value& one) { return is_instance(one, schema.at("items").as_object()); });
  }
  if (!value.is_object()) return false;
  const json::Value* properties = json::find(schema, "properties");
  if (const json::Value* required = json::find(schema, "required")) {
    for (const json::Value& name : required->as_array()) {
      if (!value.as_object().contains(name.as_string())) return false;
    }
  }
  return !properties || std::ranges::all_of(value.as_object(), [&](const auto& member) {
    const json::Value* one = json::find(properties->as_object(), member.key());
    return one && is_instance(member.value(), one->as_object());
  });
}

// A model that knows nothing; after a while it picks what brings texts and lists to their end. `closing`: a tag that it knows then, too.
class RandomWriter {
 public:
  RandomWriter(std::shared_ptr<const grammar::Vocabulary> words, std::uint64_t seed, std::string_view closing)
      : words_(std::move(words)), random_(seed) {
    if (!closing.empty()) tag_ = grammar::spell(grammar::testing::smollm2(), closing);
  }

  std::string write(grammar::Matcher& matcher, int most) {
    std::string text;
    for (int n = 0; n < most; ++n) {
      const bool hurried = n > 30;
      if (*matcher.may_end() && (matcher.must_end() || hurried || random_() % 8 == 0)) return text;
      if (hurried && !tag_.empty() && matcher.validate(tag_).value_or(0) == tag_.size()) {
        for (const TokenId id : tag_) text += take(matcher, id);
        continue;
      }
      const std::optional<TokenId> token = choose(*matcher.mask(), hurried);
      if (!token) return *matcher.may_end() ? text : text + "<nothing is allowed>";
      text += take(matcher, *token);
    }
    return text + "<no end>";
  }

 private:
  std::string take(grammar::Matcher& matcher, TokenId id) {
    const auto accepted = matcher.accept(id);
    EXPECT_TRUE(accepted) << accepted.error().message;
    return words_->tokenizer().token_bytes(id, true);
  }

  std::optional<TokenId> choose(std::span<const std::uint32_t> mask, bool hurried) {
    const auto allows = [&](TokenId id) { return (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0; };
    std::vector<TokenId> allowed;
    for (TokenId id = 0; id < words_->size(); ++id) {
      if (allows(id) && !words_->ends_answer(id)) allowed.push_back(id);
    }
    if (allowed.empty()) return std::nullopt;
    const TokenId any = allowed[random_() % allowed.size()];
    if (!hurried && random_() % 6 != 0) return any;
    // A mark comes next where one may.
    if (allowed.back() >= grammar::testing::smollm2().vocab_size()) return allowed.back();
    for (const std::string_view end : {"\"", "}", "]", "<", "</", "\n", ")", ">", "0"}) {
      const auto id = words_->tokenizer().find(end);
      if (id && allows(*id) && random_() % 2 == 0) return id;
    }
    return any;
  }

  std::shared_ptr<const grammar::Vocabulary> words_;
  std::mt19937_64 random_;
  std::vector<TokenId> tag_;
};

inline std::string write_within(const grammar::GrammarSpec& spec, const std::shared_ptr<const grammar::Vocabulary>& words,
                                std::uint64_t seed, std::string_view closing = "", int most = 700) {
  auto compiled = grammar::compile(spec, words);
  EXPECT_TRUE(compiled) << compiled.error().message << "\n" << spec.text;
  if (!compiled) return "";
  auto matcher = grammar::Matcher::create(*compiled);
  EXPECT_TRUE(matcher) << matcher.error().message;
  return RandomWriter(words, seed, closing).write(*matcher, most);
}

}  // namespace weir::api::testing
