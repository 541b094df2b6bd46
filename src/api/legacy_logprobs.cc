// SPDX-License-Identifier: Apache-2.0
#include "api/legacy_logprobs.h"

#include <algorithm>
#include <utility>

#include "api/text_fields.h"

namespace weir::api {

void LegacyLogprobs::start_at(std::string_view text) { offset_ = static_cast<std::int64_t>(count_characters(text)); }

void LegacyLogprobs::add_values(const TokenWriter& tokens, const sampling::TokenLogprobs& entry, std::int32_t top_n) {
  values_.number(shown_logprob(entry.token.logprob));
  tops_.open_object();
  bool own = false;
  const auto count = std::min(entry.top.size(), static_cast<std::size_t>(std::max(top_n, 0)));
  for (std::size_t i = 0; i < count; ++i) {
    own |= entry.top[i].id == entry.token.id;
    tops_.member(tokens.name(entry.top[i].id), shown_logprob(entry.top[i].logprob));
  }
  if (!own) tops_.member(tokens.name(entry.token.id), shown_logprob(entry.token.logprob));
  tops_.close_object();
}

void LegacyLogprobs::add(const TokenWriter& tokens, const sampling::TokenLogprobs& entry, std::int32_t top_n, bool show_special) {
  names_.text(tokens.name(entry.token.id));
  offsets_.integer(offset_);
  offset_ += static_cast<std::int64_t>(count_characters(tokens.bytes(entry.token.id, show_special)));
  add_values(tokens, entry, top_n);
}

void LegacyLogprobs::add_prompt(const TokenWriter& tokens, std::span<const TokenId> ids, std::string_view text,
                                std::span<const sampling::TokenLogprobs> entries, std::int32_t top_n) {
  std::size_t place = 0;  // bytes of the text before the token
  for (std::size_t i = 0; i < ids.size() && i <= entries.size(); ++i) {
    names_.text(tokens.name(ids[i]));
    offsets_.integer(offset_);
    // Special tokens take room only where the client wrote them: the one that the tokenizer puts in front is not in the text.
    const std::string written = tokens.bytes(ids[i], true);
    const bool there = text.substr(std::min(place, text.size())).starts_with(written);
    const std::string bytes = there ? written : tokens.bytes(ids[i], false);
    place += bytes.size();
    offset_ += static_cast<std::int64_t>(count_characters(bytes));
    if (i > 0) {
      add_values(tokens, entries[i - 1], top_n);
    } else {
      values_.null();
      tops_.null();
    }
  }
}

void LegacyLogprobs::write(JsonText& out, LegacyLogprobs* before) {
  const auto take = [&](JsonText& list) {
    if (std::string text = std::exchange(list, {}).take(); !text.empty()) out.raw(text);
  };
  const std::pair<const char*, JsonText LegacyLogprobs::*> lists[] = {{"tokens", &LegacyLogprobs::names_},
                                                                      {"token_logprobs", &LegacyLogprobs::values_},
                                                                      {"top_logprobs", &LegacyLogprobs::tops_},
                                                                      {"text_offset", &LegacyLogprobs::offsets_}};
  out.open_object();
  for (const auto& [name, list] : lists) {
    out.key(name).open_array();
    if (before) take(before->*list);
    take(this->*list);
    out.close_array();
  }
  out.close_object();
}

}  // namespace weir::api
