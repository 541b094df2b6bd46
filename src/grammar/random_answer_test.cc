// SPDX-License-Identifier: Apache-2.0
// The random model of random_answer_test.h.
#include "grammar/random_answer_test.h"

#include <array>
#include <bit>
#include <string_view>

namespace weir::grammar::testing {
namespace {

std::vector<TokenId> allowed_tokens(std::span<const std::uint32_t> mask) {
  std::vector<TokenId> allowed;
  for (std::size_t word = 0; word < mask.size(); ++word) {
    for (std::uint32_t bits = mask[word]; bits; bits &= bits - 1) {
      allowed.push_back(static_cast<TokenId>(word * 32 + static_cast<std::size_t>(std::countr_zero(bits))));
    }
  }
  return allowed;
}

// One that ends a text, list, object or number, as the case may be.
std::optional<TokenId> closing(const tokenizer::Tokenizer& tokenizer, std::span<const std::uint32_t> mask) {
  static constexpr std::array<std::string_view, 8> kClosing{"\"", "}", "]", "null", "n", "0", "1", ":"};
  for (const std::string_view text : kClosing) {
    const auto id = tokenizer.find(text);
    if (id && (mask[static_cast<std::size_t>(*id) / 32] >> (static_cast<std::size_t>(*id) % 32) & 1u)) return id;
  }
  return std::nullopt;
}

}  // namespace

Result<RandomAnswer> random_answer(Matcher& matcher, std::uint64_t seed, std::size_t patience, std::size_t most) {
  std::mt19937_64 random(seed);
  const Vocabulary& vocabulary = *matcher.grammar().vocabulary();
  RandomAnswer answer;
  while (answer.tokens.size() < most) {
    WEIR_ASSIGN(const auto mask, matcher.mask());
    const bool hurried = answer.tokens.size() >= patience;
    WEIR_ASSIGN(const bool may_end, matcher.may_end());
    const std::vector<TokenId> allowed = allowed_tokens(mask);
    if (allowed.empty()) return fail(ErrorCode::kInternal, "no token is allowed after \"{}\"", answer.text);
    TokenId token = allowed[random() % allowed.size()];
    if (hurried || random() % 8 == 0) token = closing(vocabulary.tokenizer(), mask).value_or(token);
    if (may_end && (hurried || random() % 4 == 0 || vocabulary.ends_answer(token))) {
      answer.whole = true;
      return answer;
    }
    WEIR_TRY(matcher.accept(token));
    answer.tokens.push_back(token);
    answer.text += vocabulary.tokenizer().token_bytes(token);
  }
  return answer;
}

}  // namespace weir::grammar::testing
