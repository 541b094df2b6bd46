// SPDX-License-Identifier: Apache-2.0
// The "decoder" of a tokenizer.json: steps that turn token texts into text. Also what a single token stands for, which is what
// streaming shows.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tokenizer/core_tokenizer.h"
#include "tokenizer/json_normalizer.h"

namespace weir::tokenizer {

class JsonDecoder final : public TextDecoder {
 public:
  static Result<JsonDecoder> parse(const json::Value* value);  // null: tokens are joined by spaces

  std::string decode(std::span<const std::string_view> token_texts) const override;
  // The bytes of one token within a text.
  std::string bytes_of(std::string_view token) const;
  // True when the space before the first word is not shown.
  bool strips_leading_space() const;

 private:
  struct ByteLevel {};
  struct Metaspace {
    std::string replacement;
    bool strips_first;
  };
  struct WordPiece {
    std::string prefix;
    bool cleanup;
  };
  struct ByteFallback {};
  struct Fuse {};
  struct Strip {
    std::string content;
    std::size_t start, stop;
  };
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  struct Suffix {
    std::string suffix;
  };
  struct Spaces {};  // no decoder
  using Step = std::variant<ByteLevel, Metaspace, WordPiece, ByteFallback, Fuse, Strip, Replace, Suffix, Spaces>;

  Status add(const json::Value& value, int depth);
  Result<Step> parse_step(const json::Object& object, std::string_view type);
  static void apply(const Step& step, std::vector<std::string>& tokens);

  std::vector<Step> steps_;
};

}  // namespace weir::tokenizer
