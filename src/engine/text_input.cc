// SPDX-License-Identifier: Apache-2.0
#include "engine/text_input.h"

#include <algorithm>

namespace weir::engine {
namespace {

Error too_long(std::int64_t tokens, std::int64_t most) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} tokens, and this model reads at most {}: shorten it, or ask for it to be cut", tokens, most)};
}

std::vector<TokenId> plain_ids(const tokenizer::Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.add_special = false, .parse_special = false});
}

void keep_first(std::vector<TokenId>& ids, std::int64_t count) { ids.resize(std::min(ids.size(), static_cast<std::size_t>(count))); }

// Room for tokens beside `special` ones, or an error when there is none.
Result<std::int64_t> room(std::int64_t special, std::int64_t length, const InputLimits& limits) {
  if (limits.most <= 0 || length <= limits.most) return length - special;
  if (!limits.cut) return std::unexpected(too_long(length, limits.most));
  if (limits.most <= special)
    return fail(ErrorCode::kInvalidArgument, "cut to {} tokens nothing is left of the text: {} are special ones", limits.most, special);
  return limits.most - special;
}

Result<EncodedInput> encode_text(const tokenizer::Tokenizer& tokenizer, std::string_view text, const InputLimits& limits) {
  std::vector<TokenId> body = plain_ids(tokenizer, text);
  const auto special = static_cast<std::int64_t>(tokenizer.text_prefix.size() + tokenizer.text_suffix.size());
  const auto length = static_cast<std::int64_t>(body.size()) + special;
  WEIR_ASSIGN(const std::int64_t kept, room(special, length, limits));
  keep_first(body, kept);
  EncodedInput out;
  out.cut = length - special - kept;
  out.ids = tokenizer.text_prefix;
  out.ids.insert(out.ids.end(), body.begin(), body.end());
  out.ids.insert(out.ids.end(), tokenizer.text_suffix.begin(), tokenizer.text_suffix.end());
  return out;
}

// How much of two texts is kept when `most` tokens are: the longer one gives way first.
std::pair<std::int64_t, std::int64_t> longest_first(std::int64_t first, std::int64_t second, std::int64_t most) {
  if (first + second <= most) return {first, second};
  const bool swapped = first > second;
  std::int64_t shorter = std::min(first, second), longer = shorter > most ? shorter : std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = shorter + most % 2;
  }
  return swapped ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

std::vector<tokenizer::PairItem> pair_items(const tokenizer::Tokenizer& tokenizer) {
  if (!tokenizer.pair.empty()) return tokenizer.pair;
  using Kind = tokenizer::PairItem::Kind;
  std::vector<tokenizer::PairItem> items;
  for (const TokenId id : tokenizer.text_prefix) items.push_back({Kind::kToken, id, 0});
  items.push_back({Kind::kFirst, 0, 0});
  items.push_back({Kind::kSecond, 0, 0});
  for (const TokenId id : tokenizer.text_suffix) items.push_back({Kind::kToken, id, 0});
  return items;
}

Result<EncodedInput> encode_pair(const LoadedModel& loaded, const tokenizer::Tokenizer& tokenizer, const TextPair& pair,
                                 const InputLimits& limits) {
  const auto items = pair_items(tokenizer);
  std::vector<TokenId> first = plain_ids(tokenizer, pair.first), second = plain_ids(tokenizer, pair.second);
  const auto special = static_cast<std::int64_t>(items.size()) - 2;
  const auto a = static_cast<std::int64_t>(first.size()), b = static_cast<std::int64_t>(second.size());
  WEIR_ASSIGN(const std::int64_t kept, room(special, a + b + special, limits));
  const auto [keep_a, keep_b] = longest_first(a, b, kept);
  keep_first(first, keep_a);
  keep_first(second, keep_b);
  const auto& types = loaded.model->weights().type_embedding;
  const std::int32_t most_type = types ? static_cast<std::int32_t>(types->view.dim(0)) - 1 : -1;
  EncodedInput out;
  out.cut = a + b - keep_a - keep_b;
  for (const tokenizer::PairItem& item : items) {
    using Kind = tokenizer::PairItem::Kind;
    if (item.kind == Kind::kToken) out.ids.push_back(item.id);
    if (item.kind == Kind::kFirst) out.ids.insert(out.ids.end(), first.begin(), first.end());
    if (item.kind == Kind::kSecond) out.ids.insert(out.ids.end(), second.begin(), second.end());
    if (most_type > 0) out.types.resize(out.ids.size(), std::min(item.type, most_type));
  }
  return out;
}

Result<EncodedInput> encode_ids(const std::vector<TokenId>& ids, const InputLimits& limits) {
  const auto length = static_cast<std::int64_t>(ids.size());
  WEIR_ASSIGN(const std::int64_t kept, room(0, length, limits));
  EncodedInput out;
  out.ids = ids;
  keep_first(out.ids, kept);
  out.cut = length - kept;
  return out;
}

}  // namespace

std::int64_t input_limit(const LoadedModel& loaded, std::int64_t files_limit) {
  const model::Traits& traits = loaded.model->traits();
  std::int64_t most = 0;
  const auto lower = [&](std::int64_t limit) {
    if (limit > 0 && (most == 0 || limit < most)) most = limit;
  };
  lower(files_limit);
  lower(traits.max_context);
  lower(traits.max_positions);
  if (const auto& positions = loaded.model->weights().position_embedding) lower(positions->view.dim(0) - traits.position_offset);
  return most;
}

Result<InputLimits> request_limits(std::int64_t model_limit, std::optional<std::int64_t> asked, bool cut) {
  if (asked && *asked < 1) return fail(ErrorCode::kInvalidArgument, "a limit of {} tokens", *asked);
  const std::int64_t most = !asked ? model_limit : model_limit > 0 ? std::min(model_limit, *asked) : *asked;
  return InputLimits{.most = most, .cut = cut};
}

Result<EncodedInput> encode_input(const LoadedModel& loaded, const TextInput& input, const InputLimits& limits) {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&input)) return encode_ids(*ids, limits);
  WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded.require_tokenizer());
  if (const auto* pair = std::get_if<TextPair>(&input)) return encode_pair(loaded, *tokenizer, *pair, limits);
  return encode_text(*tokenizer, std::get<std::string>(input), limits);
}

}  // namespace weir::engine
