// SPDX-License-Identifier: Apache-2.0
// Any text as a grammar of any kind. It may be refused; when it is not, a walk along its masks must come back, never meet a token that
// the mask allowed and the grammar refuses, and see the same mask again after taking tokens back.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"
#include "grammar/testing_byte_tokenizer.h"

namespace {

using namespace weir;  // NOLINT: a program of one file

grammar::GrammarSpec spec_from(std::string_view data) {
  grammar::GrammarSpec spec{.kind = static_cast<grammar::GrammarKind>(static_cast<unsigned char>(data[0]) % 5)};
  spec.text = data.substr(1);
  spec.choices = {spec.text, "b"};
  return spec;
}

// The n-th allowed token, counted from the lowest and around.
std::int64_t pick(std::span<const std::uint32_t> mask, std::size_t n) {
  std::vector<std::int64_t> allowed;
  for (std::size_t i = 0; i < mask.size() * 32; ++i) {
    if (mask[i / 32] >> (i % 32) & 1u) allowed.push_back(static_cast<std::int64_t>(i));
  }
  return allowed.empty() ? -1 : allowed[n % allowed.size()];
}

void walk(grammar::Matcher& matcher, std::string_view data) {
  for (std::size_t i = 0; i < 24 && !matcher.finished(); ++i) {
    const auto mask = matcher.mask();
    if (!mask) return;
    const std::vector<std::uint32_t> before(mask->begin(), mask->end());
    const std::int64_t token = pick(before, i * 31 + static_cast<unsigned char>(data[i % data.size()]));
    if (token < 0) return;
    const Status accepted = matcher.accept(static_cast<TokenId>(token));
    if (!accepted && accepted.error().code == ErrorCode::kInvalidArgument) std::abort();
    if (!accepted || !matcher.rollback(1)) return;
    const auto again = matcher.mask();
    if (!again) return;
    if (!std::equal(again->begin(), again->end(), before.begin(), before.end())) std::abort();
    if (!matcher.accept(static_cast<TokenId>(token))) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto vocabulary = grammar::Vocabulary::create(std::make_shared<grammar::testing::ByteTokenizer>(), 260);
  if (size == 0 || size > 2000) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto compiled = grammar::compile(spec_from(text), vocabulary);
  if (!compiled) return 0;
  auto matcher = grammar::Matcher::create(*compiled);
  if (matcher) walk(*matcher, text);
  return 0;
}
