// SPDX-License-Identifier: Apache-2.0
// What all vocabularies have in common, on a small byte-level one: special tokens, roles, streaming, invalid UTF-8, long texts,
// threads; and the refusals of the GGUF loader.
#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>

#include <random>
#include <thread>

#include "formats/gguf_writer.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace weir::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Spec {
  std::string model = "gpt2", pre = "gpt-2";
  std::vector<std::string> more_tokens = {"<|im_end|>", "<|user|>", "[KEEP]"};
  std::vector<std::int64_t> more_types = {3, 3, 4};
  std::vector<std::string> merges = {"h e", "l l", "he ll", "hell o", "Ġ hello"};
  std::vector<int> missing_bytes = {};
  bool add_bos = false;
};

Result<formats::GgufFile> gguf_of(const Spec& spec) {
  using formats::GgufType;
  std::vector<std::string> tokens;
  std::vector<std::int64_t> types;
  for (int b = 0; b < 256; ++b) {
    if (std::ranges::find(spec.missing_bytes, b) != spec.missing_bytes.end()) continue;
    const char byte = static_cast<char>(b);
    tokens.push_back(alphabet_of_bytes({&byte, 1}));
  }
  for (std::string merge : spec.merges) {
    merge.erase(merge.find(' '), 1);
    tokens.push_back(merge);
  }
  types.assign(tokens.size(), 1);
  tokens.insert(tokens.end(), spec.more_tokens.begin(), spec.more_tokens.end());
  types.insert(types.end(), spec.more_types.begin(), spec.more_types.end());
  formats::GgufWriter writer;
  const auto add = [&](formats::GgufEntry entry) { EXPECT_TRUE(writer.add(std::move(entry))); };
  add(formats::gguf_string("general.architecture", "llama"));
  add(formats::gguf_string("tokenizer.ggml.model", spec.model));
  add(formats::gguf_string("tokenizer.ggml.pre", spec.pre));
  add(formats::gguf_array("tokenizer.ggml.tokens", GgufType::kString, tokens));
  add(formats::gguf_array("tokenizer.ggml.token_type", GgufType::kI32, types));
  add(formats::gguf_array("tokenizer.ggml.merges", GgufType::kString, spec.merges));
  add(formats::gguf_u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(tokens.size() - 2)));
  add(formats::gguf_bool("tokenizer.ggml.add_bos_token", spec.add_bos));
  add(formats::gguf_string("tokenizer.chat_template", "{{ messages }}"));
  static std::vector<std::string> kept;  // files are views
  kept.push_back(writer.to_bytes().value());
  return formats::GgufFile::parse(std::as_bytes(std::span(kept.back())), "a test");
}

std::shared_ptr<const Tokenizer> tokenizer_of(const Spec& spec = {}) {
  const auto file = gguf_of(spec);
  EXPECT_TRUE(file) << file.error().message;
  auto tokenizer = Tokenizer::from_gguf(*file);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *tokenizer;
}

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr EncodeOptions kSpecial{.add_special = false, .parse_special = true};
constexpr TokenId kHello = 259, kSpaceHello = 260, kImEnd = 261, kUser = 262, kKeep = 263;

TEST(Tokenizer, MergesAndSpecialTokens) {
  const auto t = tokenizer_of();
  EXPECT_THAT(t->encode("hello hello", kPlain), ElementsAre(kHello, kSpaceHello));
  EXPECT_THAT(t->encode("hello<|im_end|>hello", kSpecial), ElementsAre(kHello, kImEnd, kHello));
  EXPECT_EQ(t->encode("<|im_end|>", kPlain).size(), 10u);                                  // ten bytes
  EXPECT_THAT(t->encode("hello[KEEP]hello", kPlain), ElementsAre(kHello, kKeep, kHello));  // user-defined: always
  EXPECT_TRUE(t->encode("", kSpecial).empty());
}

TEST(Tokenizer, RolesAndDescription) {
  const auto t = tokenizer_of({.add_bos = true});
  EXPECT_EQ(t->bos, kUser);
  EXPECT_EQ(t->eot, kImEnd);
  EXPECT_THAT(t->end_of_generation, ::testing::Contains(kImEnd));
  EXPECT_THAT(t->encode("hello"), ElementsAre(kUser, kHello));
  EXPECT_EQ(t->chat_template, "{{ messages }}");
  EXPECT_EQ(t->description(), "byte-level BPE, pre-tokeniser gpt-2, 264 tokens");
  EXPECT_EQ(t->kind(kImEnd), TokenKind::kControl);
  EXPECT_EQ(t->find("<|user|>"), kUser);
  EXPECT_EQ(t->token_text(kSpaceHello), "Ġhello");
  EXPECT_EQ(t->token_text(-1), "");
  EXPECT_EQ(t->kind(1 << 20), TokenKind::kUnused);
}

TEST(Tokenizer, DecodingLeavesControlTokensOutUnlessAsked) {
  const auto t = tokenizer_of();
  const std::vector<TokenId> ids = {kUser, kHello, kKeep, kImEnd, 9999, -3};
  EXPECT_EQ(t->decode(ids), "hello[KEEP]");
  EXPECT_EQ(t->decode(ids, true), "<|user|>hello[KEEP]<|im_end|>");
  EXPECT_EQ(t->token_bytes(kSpaceHello), " hello");
  EXPECT_EQ(t->token_bytes(kImEnd), "");
}

TEST(Tokenizer, InvalidUtf8BecomesReplacementCharacters) {
  const auto t = tokenizer_of();
  EXPECT_EQ(t->decode(t->encode("a\xF4\x90\x80\x80z", kPlain)), "a\uFFFD\uFFFD\uFFFD\uFFFDz");
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string bytes;
    for (int n = static_cast<int>(random() % 40); n > 0; --n) bytes += static_cast<char>(random());
    const std::string once = t->decode(t->encode(bytes, kPlain));
    EXPECT_EQ(t->decode(t->encode(once, kPlain)), once);
  }
}

TEST(Tokenizer, BytesWithoutATokenAreDropped) {
  const auto t = tokenizer_of({.missing_bytes = {'x', 0xE4}});
  EXPECT_EQ(t->decode(t->encode("axb", kPlain)), "ab");
  EXPECT_EQ(t->encode("中", kPlain).size(), 2u);
}

TEST(Tokenizer, LongPiecesMergeLikeShortOnes) {
  const auto t = tokenizer_of();
  // Around the length where the heap takes over.
  for (int n : {1, 5, 7, 8, 9, 12, 20, 100}) {
    std::string text;
    for (int i = 0; i < n; ++i) text += "hello";
    EXPECT_EQ(t->encode(text, kPlain), std::vector<TokenId>(static_cast<std::size_t>(n), kHello)) << n;
  }
  EXPECT_EQ(t->encode(std::string(1 << 20, 'l'), kPlain).size(), 1u << 19);
}

TEST(Tokenizer, ThreadsShareOne) {
  const auto t = tokenizer_of();
  const std::string text = "hello world, hello 123 \u4e2d\u6587 hello";
  const auto expected = t->encode(text, kPlain);
  std::vector<std::thread> threads;
  std::array<bool, 4> same{};
  for (bool& result : same) {
    threads.emplace_back([&] {
      result = true;
      for (int i = 0; i < 200; ++i) result &= t->encode(text, kPlain) == expected;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(same, ::testing::Each(true));
}

TEST(StreamDecoder, HoldsBackUnfinishedCharacters) {
  const auto t = tokenizer_of();
  StreamDecoder stream(t);
  std::vector<std::string> parts;
  for (TokenId id : t->encode("a\u4e2d", kPlain)) parts.push_back(stream.push(id));
  EXPECT_THAT(parts, ElementsAre("a", "", "", "\u4e2d"));
  EXPECT_EQ(stream.finish(), "");
  const TokenId lead = *t->find(alphabet_of_bytes("\xE4"));
  EXPECT_EQ(stream.push(lead), "");
  EXPECT_EQ(stream.push(kHello), "\uFFFDhello");
  EXPECT_EQ(stream.push(lead), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(GgufLoader, NamesWhatItDoesNotKnow) {
  const auto error_of = [](const Spec& spec) {
    const auto file = gguf_of(spec);
    EXPECT_TRUE(file);
    const auto tokenizer = Tokenizer::from_gguf(*file);
    EXPECT_FALSE(tokenizer);
    return tokenizer ? Error{} : tokenizer.error();
  };
  EXPECT_THAT(error_of({.model = "rwkv"}).message, HasSubstr("rwkv"));
  EXPECT_EQ(error_of({.model = "rwkv"}).code, ErrorCode::kUnsupported);
  EXPECT_THAT(error_of({.pre = "unheard-of"}).message, HasSubstr("unheard-of"));
  EXPECT_EQ(error_of({.pre = "unheard-of"}).code, ErrorCode::kUnsupported);
  EXPECT_THAT(error_of({.more_tokens = {"a", "b"}, .more_types = {1}}).message, HasSubstr("token_type"));
}

std::vector<std::pair<std::size_t, TokenId>> matches_in(const SpecialTokens& tokens, std::string_view text, bool control = true) {
  std::vector<std::pair<std::size_t, TokenId>> found;
  SpecialTokens::Search search(tokens, text, control);
  while (const auto match = search.next()) found.emplace_back(match->begin, match->id);
  return found;
}

TEST(SpecialTokens, TheLongestAtTheLeftmostPlaceWins) {
  SpecialTokens tokens;
  ASSERT_TRUE(tokens.add("<a>", {.id = 1, .control = true}));
  ASSERT_TRUE(tokens.add("<a><b>", {.id = 2, .control = true}));
  ASSERT_TRUE(tokens.add("  ", {.id = 3}));
  EXPECT_THAT(matches_in(tokens, "x<a><b><a>   "), ElementsAre(std::pair(1, 2), std::pair(7, 1), std::pair(10, 3)));
  EXPECT_THAT(matches_in(tokens, "x<a>  ", false), ElementsAre(std::pair(4, 3)));
  EXPECT_FALSE(tokens.add(std::string(2000, 'x'), {.id = 4}));
}

TEST(SpecialTokens, StripAndSingleWord) {
  SpecialTokens tokens;
  ASSERT_TRUE(tokens.add("<l>", {.id = 1, .strip_left = true}));
  ASSERT_TRUE(tokens.add("<r>", {.id = 2, .strip_right = true}));
  ASSERT_TRUE(tokens.add("word", {.id = 3, .single_word = true}));
  SpecialTokens::Search search(tokens, "a \u3000<l> <r>  b word words \u00e9word", true);
  const auto left = search.next(), right = search.next(), word = search.next();
  ASSERT_TRUE(left && right && word);
  EXPECT_EQ(left->begin, 1u);
  EXPECT_EQ(left->end, 8u);
  EXPECT_EQ(right->begin, 9u);
  EXPECT_EQ(right->end, 14u);
  EXPECT_EQ(word->id, 3);
  EXPECT_FALSE(search.next());
}

}  // namespace
}  // namespace weir::tokenizer
