// SPDX-License-Identifier: Apache-2.0
// Encoding walks over the special tokens; everything else is in the parts.
#include "tokenizer/core_tokenizer.h"

#include <fmt/core.h>

#include "tokenizer/regex.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {

CoreTokenizer::CoreTokenizer(SpecialRoles roles, TokenizerParts parts) : parts_(std::move(parts)) {
  static_cast<SpecialRoles&>(*this) = std::move(roles);
  text_prefix = parts_.prefix;
  text_suffix = parts_.suffix;
}
CoreTokenizer::~CoreTokenizer() = default;

std::unique_ptr<Scratch> CoreTokenizer::borrow() const {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Scratch>();
  std::unique_ptr<Scratch> scratch = std::move(idle_.back());
  idle_.pop_back();
  return scratch;
}

void CoreTokenizer::give_back(std::unique_ptr<Scratch> scratch) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

std::vector<TokenId> CoreTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<TokenId> out;
  out.reserve(text.size() / 3 + parts_.prefix.size() + parts_.suffix.size() + 4);
  std::unique_ptr<Scratch> scratch = borrow();
  const RegexTimeLimit limit(text.size());
  if (options.add_special) out = parts_.prefix;
  encode_text(repair_utf8(text, scratch->repaired), options.parse_special, *scratch, out);
  if (options.add_special) out.insert(out.end(), parts_.suffix.begin(), parts_.suffix.end());
  give_back(std::move(scratch));
  return out;
}

void CoreTokenizer::encode_text(std::string_view text, bool parse_special, Scratch& scratch, std::vector<TokenId>& out) const {
  SpecialTokens::Search search(parse_special ? parts_.special : parts_.plain, text, parse_special);
  Stretch stretch;
  stretch.parse_special = parse_special;
  std::size_t done = 0;
  const auto encode_until = [&](std::size_t end) {
    stretch.text = text.substr(done, end - done);
    stretch.first = done == 0;
    if (!stretch.text.empty()) parts_.engine->encode(stretch, scratch, out);
  };
  while (const auto match = search.next()) {
    encode_until(match->begin);
    out.push_back(match->id);
    stretch.after_special = true;
    done = match->end;
  }
  encode_until(text.size());
}

std::string_view CoreTokenizer::bytes_of(TokenId id, bool special) const {
  if (!parts_.vocabulary.contains(id) || (!special && parts_.hidden[static_cast<std::size_t>(id)])) return {};
  return parts_.bytes.text(id);
}

std::string CoreTokenizer::token_bytes(TokenId id, bool special) const { return std::string(bytes_of(id, special)); }

std::string CoreTokenizer::decode(std::span<const TokenId> ids, bool special) const {
  std::string text;
  if (parts_.decoder) {
    std::vector<std::string_view> tokens;
    for (TokenId id : ids) {
      const bool shown = parts_.vocabulary.contains(id) && (special || !parts_.hidden[static_cast<std::size_t>(id)]);
      if (shown) tokens.push_back(parts_.vocabulary.text(id));
    }
    text = parts_.decoder->decode(tokens);
  } else {
    for (TokenId id : ids) text += bytes_of(id, special);
    if (strip_leading_space && text.starts_with(' ')) text.erase(0, 1);
  }
  std::string repaired;
  return std::string(repair_utf8(text, repaired));
}

std::string_view CoreTokenizer::token_text(TokenId id) const {
  return parts_.vocabulary.contains(id) ? parts_.vocabulary.text(id) : std::string_view();
}

TokenKind CoreTokenizer::kind(TokenId id) const { return parts_.vocabulary.contains(id) ? parts_.vocabulary.kind(id) : TokenKind::kUnused; }

std::string CoreTokenizer::description() const {
  return fmt::format("{}, {} tokens", parts_.engine->description(), parts_.vocabulary.size());
}

}  // namespace weir::tokenizer
