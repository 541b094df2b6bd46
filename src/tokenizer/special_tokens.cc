// SPDX-License-Identifier: Apache-2.0
// The root is a table by first byte, so that ordinary text is skipped a byte at a time without touching the trie.
#include "tokenizer/special_tokens.h"

#include <algorithm>

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

constexpr std::size_t kMaxBytes = 1024;

std::size_t character_before(std::string_view text, std::size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

std::size_t spaces_before(std::string_view text, std::size_t at, std::size_t floor) {
  while (at > floor) {
    const std::size_t before = character_before(text, at);
    if (before < floor || !is_space(code_of_valid_utf8(text.data() + before))) break;
    at = before;
  }
  return at;
}

std::size_t spaces_after(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(code_of_valid_utf8(text.data() + at))) at += utf8_length(text[at]);
  return at;
}

bool within_word(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin > 0 && is_word(code_of_valid_utf8(text.data() + character_before(text, begin)))) ||
         (end < text.size() && is_word(code_of_valid_utf8(text.data() + end)));
}

}  // namespace

std::int32_t SpecialTokens::child_of(std::int32_t node, std::uint8_t byte) const {
  std::int32_t child = nodes_[static_cast<std::size_t>(node)].child;
  while (child >= 0 && nodes_[static_cast<std::size_t>(child)].byte != byte) child = nodes_[static_cast<std::size_t>(child)].sibling;
  return child;
}

Status SpecialTokens::add(std::string_view text, const SpecialToken& token) {
  if (text.empty()) return {};
  if (text.size() > kMaxBytes) return fail(ErrorCode::kUnsupported, "the special token {} has {} bytes", token.id, text.size());
  std::int32_t node = 0;
  for (char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    std::int32_t child = node == 0 ? root_[byte] : child_of(node, byte);
    if (child < 0) {
      child = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({byte, -1, node == 0 ? -1 : nodes_[static_cast<std::size_t>(node)].child, -1});
      if (node == 0)
        root_[byte] = child;
      else
        nodes_[static_cast<std::size_t>(node)].child = child;
    }
    node = child;
  }
  nodes_[static_cast<std::size_t>(node)].token = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back(token);
  any_plain_ |= !token.control;
  return {};
}

std::pair<std::int32_t, std::size_t> SpecialTokens::longest(std::string_view text) const {
  std::pair<std::int32_t, std::size_t> best{-1, 0};
  std::int32_t node = root_[static_cast<unsigned char>(text[0])];
  for (std::size_t length = 1; node >= 0; ++length) {
    if (nodes_[static_cast<std::size_t>(node)].token >= 0) best = {nodes_[static_cast<std::size_t>(node)].token, length};
    if (length == text.size()) break;
    node = child_of(node, static_cast<std::uint8_t>(text[length]));
  }
  return best;
}

std::optional<SpecialTokens::Match> SpecialTokens::Search::next() {
  if (tokens_.tokens_.empty() || (!parse_control_ && !tokens_.any_plain_)) return std::nullopt;
  while (at_ < text_.size()) {
    if (tokens_.root_[static_cast<unsigned char>(text_[at_])] < 0) {
      ++at_;
      continue;
    }
    const auto [index, length] = tokens_.longest(text_.substr(at_));
    if (index < 0) {
      ++at_;
      continue;
    }
    const SpecialToken& token = tokens_.tokens_[static_cast<std::size_t>(index)];
    Match match{at_, at_ + length, token.id};
    at_ = match.end;
    if (token.control && !parse_control_) continue;
    if (token.single_word && within_word(text_, match.begin, match.end)) continue;
    if (token.strip_left) match.begin = spaces_before(text_, match.begin, taken_);
    if (token.strip_right) match.end = spaces_after(text_, match.end);
    match.begin = std::max(match.begin, taken_);
    match.end = std::max(match.end, match.begin);
    taken_ = match.end;
    return match;
  }
  return std::nullopt;
}

}  // namespace weir::tokenizer
