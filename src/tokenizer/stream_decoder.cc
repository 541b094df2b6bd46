// SPDX-License-Identifier: Apache-2.0
// Only the last character can be unfinished, so at most three bytes are held back.
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool special)
    : tokenizer_(std::move(tokenizer)), special_(special) {}

std::string StreamDecoder::push(TokenId id) {
  pending_ += tokenizer_->token_bytes(id, special_);
  if (at_start_ && !pending_.empty()) {
    if (tokenizer_->strip_leading_space && pending_.front() == ' ') pending_.erase(0, 1);
    at_start_ = false;
  }
  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const std::size_t good = valid_utf8_prefix(rest);
    text += rest.substr(0, good);
    rest.remove_prefix(good);
    if (rest.empty()) break;
    const Utf8Char bad = decode_utf8(rest);
    if (bad.unfinished) break;
    append_utf8(kReplacement, text);
    rest.remove_prefix(bad.size);
  }
  pending_ = std::string(rest);
  return text;
}

std::string StreamDecoder::finish() {
  if (pending_.empty()) return {};
  pending_.clear();
  std::string text;
  append_utf8(kReplacement, text);
  return text;
}

}  // namespace weir::tokenizer
