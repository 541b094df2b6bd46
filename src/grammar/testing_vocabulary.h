// SPDX-License-Identifier: Apache-2.0
// For this folder's tests only: SmolLM2's vocabulary, matchers over it, and walking a matcher along a text.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/testing.h"
#include "formats/gguf_reader.h"
#include "grammar/matcher.h"

namespace weir::grammar::testing {

inline std::shared_ptr<const Vocabulary> smollm2_vocabulary() {
  static const std::shared_ptr<const Vocabulary> vocabulary = [] {
    const auto file = formats::GgufFile::open(weir::testing::smollm2_path());
    WEIR_CHECK(file.has_value(), "{}", file.error().message);
    auto tokenizer = tokenizer::Tokenizer::from_gguf(*file);
    WEIR_CHECK(tokenizer.has_value(), "{}", tokenizer.error().message);
    const std::int32_t size = (*tokenizer)->vocab_size();
    return Vocabulary::create(std::move(*tokenizer), size);
  }();
  return vocabulary;
}

inline const tokenizer::Tokenizer& smollm2() { return smollm2_vocabulary()->tokenizer(); }

inline Matcher make_matcher(const GrammarSpec& spec) {
  auto grammar = compile(spec, smollm2_vocabulary());
  WEIR_CHECK(grammar.has_value(), "{}", grammar.error().message);
  auto matcher = Matcher::create(*grammar);
  WEIR_CHECK(matcher.has_value(), "{}", matcher.error().message);
  return std::move(*matcher);
}

inline Status accept_text(Matcher& matcher, std::string_view text) {
  for (const TokenId token : spell(smollm2(), text)) WEIR_TRY(matcher.accept(token));
  return {};
}

}  // namespace weir::grammar::testing
