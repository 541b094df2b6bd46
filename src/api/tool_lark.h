// SPDX-License-Identifier: Apache-2.0
// A grammar in llguidance's dialect of Lark, put together rule by rule. What comes from outside enters as escaped texts and as JSON only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace weir::api {

class LarkWriter {
 public:
  explicit LarkWriter(const tokenizer::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Parts of a rule. A text with special tokens in it becomes a sequence of texts and tokens; an empty one is nothing.
  std::string text(std::string_view text) const;
  static std::string schema(const json::Value& schema);
  // A new rule or terminal with this body: its name.
  std::string rule(std::string_view body);
  std::string terminal(std::string_view body);
  // Any text without these marks; marks that are special tokens no text contains anyway. Never empty.
  std::string text_without(const std::vector<std::string_view>& marks);
  // Any text, perhaps empty, up to the mark's first occurrence and with it.
  std::string text_until(std::string_view mark, const std::vector<std::string_view>& without = {});
  bool begins_special(std::string_view text) const;

  std::string grammar(std::string_view start) const { return "start: " + std::string(start) + "\n" + rules_; }

 private:
  // The special token that the text begins with: its size in bytes and its id; 0: none.
  std::pair<std::size_t, TokenId> special_at(std::string_view text) const;
  std::string expression_without(const std::vector<std::string_view>& marks) const;

  const tokenizer::Tokenizer& tokenizer_;
  std::string rules_;
  int count_ = 0;
};

}  // namespace weir::api
