// SPDX-License-Identifier: Apache-2.0
#include "bench/prompts.h"

#include <algorithm>

#include "sampling/random.h"

namespace weir::bench {

std::vector<TokenId> ordinary_tokens(const engine::LoadedModel& loaded) {
  const std::int32_t size = loaded.model->traits().vocab_size;
  std::vector<TokenId> tokens;
  if (const auto& tokenizer = loaded.tokenizer) {
    const auto& ends = tokenizer->end_of_generation;
    for (TokenId id = 0; id < std::min(size, tokenizer->vocab_size()); ++id)
      if (tokenizer->kind(id) == tokenizer::TokenKind::kNormal && !std::ranges::binary_search(ends, id)) tokens.push_back(id);
  }
  if (tokens.empty())
    for (TokenId id = 0; id < std::max(size, 1); ++id) tokens.push_back(id);
  return tokens;
}

std::vector<TokenId> random_prompt(const std::vector<TokenId>& tokens, std::int64_t count, std::uint64_t seed, std::uint64_t sequence) {
  std::vector<TokenId> prompt;
  prompt.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double u = sampling::uniform(seed, sequence, static_cast<std::uint64_t>(i));
    prompt.push_back(tokens[std::min(static_cast<std::size_t>(u * static_cast<double>(tokens.size())), tokens.size() - 1)]);
  }
  return prompt;
}

}  // namespace weir::bench
