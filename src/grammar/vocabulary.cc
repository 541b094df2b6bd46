// SPDX-License-Identifier: Apache-2.0
// Tokens to bytes for the trie, and text to tokens for what a grammar forces. Control tokens go under their names behind 0xFF, which
// no text contains: a Lark grammar can name them, everything else passes them by.
#include "grammar/vocabulary.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/native.h"

namespace weir::grammar {
namespace {

constexpr char kSpecial = '\xff';

std::string bytes_for_trie(const tokenizer::Tokenizer& tokenizer, TokenId id) {
  switch (tokenizer.kind(id)) {
    case tokenizer::TokenKind::kControl:
    case tokenizer::TokenKind::kUnknown: return kSpecial + std::string(tokenizer.token_text(id));
    case tokenizer::TokenKind::kUnused: return {};
    default: return tokenizer.token_bytes(id);
  }
}

bool spells(const tokenizer::Tokenizer& tokenizer, std::span<const TokenId> tokens, std::string_view text) {
  for (const TokenId token : tokens) {
    const std::string bytes = tokenizer.token_bytes(token);
    if (bytes.empty() || !text.starts_with(bytes)) return false;
    text.remove_prefix(bytes.size());
  }
  return text.empty();
}

std::size_t tokenize(const void* context, const char* text, std::size_t size, std::uint32_t* tokens, std::size_t room) {
  try {
    const std::vector<TokenId> ids = spell(*static_cast<const tokenizer::Tokenizer*>(context), {text, size});
    if (ids.empty() || ids.size() > room) return SIZE_MAX;
    std::copy(ids.begin(), ids.end(), tokens);
    return ids.size();
  } catch (...) {
    return SIZE_MAX;
  }
}

}  // namespace

std::vector<TokenId> spell(const tokenizer::Tokenizer& tokenizer, std::string_view text) {
  const tokenizer::EncodeOptions plain{.add_special = false, .parse_special = false};
  std::vector<TokenId> tokens = tokenizer.encode(text, plain);
  if (spells(tokenizer, tokens, text)) return tokens;
  // A tokenizer that puts a space before every text: encode it behind a line break, which it keeps apart.
  tokens = tokenizer.encode("\n" + std::string(text), plain);
  for (std::size_t i = 1; i <= std::min<std::size_t>(3, tokens.size()); ++i) {
    if (spells(tokenizer, std::span(tokens).subspan(i), text)) return {tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens.end()};
  }
  return {};
}

Vocabulary::Vocabulary(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::int32_t size)
    : tokenizer_(std::move(tokenizer)), size_(size), ends_(tokenizer_->end_of_generation) {
  if (ends_.empty() && tokenizer_->eos) ends_.push_back(*tokenizer_->eos);
  std::erase_if(ends_, [&](TokenId id) { return id < 0 || id >= size_; });
  std::sort(ends_.begin(), ends_.end());
}

std::shared_ptr<const Vocabulary> Vocabulary::create(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::int32_t size) {
  return std::shared_ptr<const Vocabulary>(new Vocabulary(std::move(tokenizer), size));
}

Vocabulary::~Vocabulary() { weir_vocabulary_free(native_); }

bool Vocabulary::ends_answer(TokenId token) const { return std::binary_search(ends_.begin(), ends_.end(), token); }

Result<const weir_vocabulary*> Vocabulary::native() const {
  const std::lock_guard lock(mutex_);
  if (!native_) WEIR_TRY(build());
  return native_;
}

Status Vocabulary::build() const {
  std::string bytes;
  std::vector<std::size_t> offsets{0};
  offsets.reserve(static_cast<std::size_t>(size_) + 1);
  for (TokenId id = 0; id < size_; ++id) {
    if (id < tokenizer_->vocab_size()) bytes += bytes_for_trie(*tokenizer_, id);
    offsets.push_back(bytes.size());
  }
  const std::vector<std::uint32_t> ends(ends_.begin(), ends_.end());
  NativeError error;
  const weir_text_code code = weir_vocabulary_new(bytes.data(), offsets.data(), offsets.size() - 1, ends.data(), ends.size(), &tokenize,
                                                  tokenizer_.get(), &native_, &error.text);
  if (code != WEIR_TEXT_OK) return error.as_error(code);
  return {};
}

}  // namespace weir::grammar
