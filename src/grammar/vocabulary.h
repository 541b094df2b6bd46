// SPDX-License-Identifier: Apache-2.0
// A model's tokens as constrained output needs them: the bytes of each, those that end an answer, and the tokenizer itself, which
// says how a forced text is cut into tokens. One for each model, shared by all requests and threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "tokenizer/tokenizer.h"

struct weir_vocabulary;

namespace weir::grammar {

class Vocabulary {
 public:
  // `size`: tokens that the model has logits for; where it is more than the tokenizer's, the rest is never allowed. Cheap: the trie
  // is built when the first grammar is compiled.
  static std::shared_ptr<const Vocabulary> create(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::int32_t size);
  ~Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  std::int32_t size() const { return size_; }
  std::size_t mask_words() const { return (static_cast<std::size_t>(size_) + 31) / 32; }
  const tokenizer::Tokenizer& tokenizer() const { return *tokenizer_; }
  bool ends_answer(TokenId token) const;  // end of generation

  // The library's handle, built at the first call.
  Result<const weir_vocabulary*> native() const;

 private:
  Vocabulary(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::int32_t size);
  Status build() const;

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::int32_t size_;
  std::vector<TokenId> ends_;
  mutable std::mutex mutex_;  // guards native_
  mutable weir_vocabulary* native_ = nullptr;
};

// Tokens that spell `text` exactly, as the tokenizer cuts it in the middle of a text; empty when it does not spell it exactly.
std::vector<TokenId> spell(const tokenizer::Tokenizer& tokenizer, std::string_view text);

}  // namespace weir::grammar
