// SPDX-License-Identifier: Apache-2.0
// Scores are added in double, as the reference libraries do: sums that differ in the last bit could pick another path.
#include "tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {
constexpr double kUnknownPenalty = 10.0;
constexpr double kUnreached = -std::numeric_limits<double>::infinity();
}  // namespace

Unigram::Unigram(const Vocabulary& vocabulary, const std::vector<UnigramToken>& tokens, double worst_score, std::optional<TokenId> unknown,
                 bool byte_fallback)
    : scores_(static_cast<std::size_t>(vocabulary.size())), unknown_score_(worst_score - kUnknownPenalty), unknown_(unknown) {
  for (const UnigramToken& token : tokens) {
    if (!vocabulary.text(token.id).empty()) trie_.add(vocabulary.text(token.id), token.id);
    scores_[static_cast<std::size_t>(token.id)] = token.score;
  }
  for (int b = 0; byte_fallback && b < 256; ++b) {
    const auto token = vocabulary.find(byte_token(static_cast<std::uint8_t>(b)));
    if (!token) {
      byte_tokens_.clear();
      break;
    }
    byte_tokens_.push_back(*token);
  }
}

void Unigram::encode(std::string_view text, Lattice& lattice, std::vector<TokenId>& out) const {
  auto& best = lattice.best;
  best.assign(text.size() + 1, {kUnreached, 0, kUnknown});
  best[0].score = 0;
  for (std::size_t begin = 0; begin < text.size(); begin += utf8_length(text[begin])) {
    const double here = best[begin].score;
    const std::size_t character_end = begin + utf8_length(text[begin]);
    const auto offer = [&](std::size_t end, double score, TokenId id) {
      if (here + score > best[end].score) best[end] = {here + score, begin, id};
    };
    bool covered = false;
    std::int32_t node = Trie::kRoot;
    for (std::size_t end = begin; end < text.size();) {
      node = trie_.child(node, static_cast<std::uint8_t>(text[end++]));
      if (node == Trie::kNone) break;
      const TokenId id = trie_.token(node);
      if (id == Trie::kNone) continue;
      offer(end, scores_[static_cast<std::size_t>(id)], id);
      covered |= end == character_end;
    }
    if (!covered) offer(character_end, unknown_score_, kUnknown);
  }
  auto& borders = lattice.borders;
  borders.clear();
  for (std::size_t end = text.size(); end > 0; end = best[end].begin) borders.push_back(end);
  std::size_t begin = 0, unknown_begin = 0;
  bool unknown = false;
  for (auto end = borders.rbegin(); end != borders.rend(); ++end) {
    const TokenId id = best[*end].id;
    const bool is_unknown = id == kUnknown || (unknown_ && id == *unknown_);
    if (is_unknown && !unknown) unknown_begin = begin;
    if (!is_unknown) {
      if (unknown) append_unknown(text.substr(unknown_begin, begin - unknown_begin), out);
      out.push_back(id);
    }
    unknown = is_unknown;
    begin = *end;
  }
  if (unknown) append_unknown(text.substr(unknown_begin), out);
}

void Unigram::append_unknown(std::string_view text, std::vector<TokenId>& out) const {
  if (!byte_tokens_.empty()) {
    for (char byte : text) out.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
  } else if (unknown_) {
    out.push_back(*unknown_);
  }
}

}  // namespace weir::tokenizer
