// SPDX-License-Identifier: Apache-2.0
// Expressions, choices, Lark grammars, the cache, and grammars made to hurt.
#include "grammar/grammar.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "grammar/grammar_cache.h"
#include "grammar/matcher.h"
#include "grammar/random_answer_test.h"
#include "grammar/testing_byte_tokenizer.h"
#include "grammar/testing_vocabulary.h"

namespace weir::grammar {
namespace {

using testing::ByteTokenizer;
using ::testing::HasSubstr;

// The byte tokenizer is enough here; 260 tokens, the last one padding.
const std::shared_ptr<const Vocabulary>& bytes() {
  static const auto vocabulary = Vocabulary::create(std::make_shared<ByteTokenizer>(), 260);
  return vocabulary;
}

bool takes(const GrammarSpec& spec, std::string_view text) {
  const auto grammar = compile(spec, bytes());
  if (!grammar) ADD_FAILURE() << grammar.error().message;
  auto matcher = Matcher::create(*grammar);
  for (const TokenId token : spell(bytes()->tokenizer(), text)) {
    if (!matcher->accept(token)) return false;
  }
  return matcher->may_end().value_or(false);
}

Error refusal(const GrammarSpec& spec) {
  const auto grammar = compile(spec, bytes());
  return grammar ? Error{ErrorCode::kInternal, "was not refused"} : grammar.error();
}

TEST(Regex, TheWholeAnswerMatches) {
  const GrammarSpec spec{.kind = GrammarKind::kRegex, .text = "[a-c]+/(x|yy){2}"};
  EXPECT_TRUE(takes(spec, "abc/xyy"));
  EXPECT_FALSE(takes(spec, "abc/x"));
  EXPECT_FALSE(takes(spec, " a/xx"));
  EXPECT_TRUE(takes({.kind = GrammarKind::kRegex, .text = "^a$"}, "a"));
  EXPECT_TRUE(takes({.kind = GrammarKind::kRegex, .text = "(?i)yes"}, "yEs"));
}

TEST(Regex, RandomAnswersMatch) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  for (const std::string text : {"[A-Z]{2}-[0-9]{4}", "(red|green|blue)( (red|green|blue)){0,3}", "[^a-y\\s]{1,9}", "#[0-9a-f]{6}"}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Matcher matcher = testing::make_matcher({.kind = GrammarKind::kRegex, .text = text});
      const auto answer = testing::random_answer(matcher, seed);
      ASSERT_TRUE(answer) << answer.error().message;
      if (!answer->whole || text.starts_with("[^")) continue;
      EXPECT_TRUE(std::regex_match(answer->text, std::regex(text))) << answer->text;
    }
  }
}

TEST(Choice, OneOfTheTextsAndNothingElse) {
  const GrammarSpec spec{.kind = GrammarKind::kChoice, .choices = {"a.b", "true", "\"}\n", "größe"}};
  for (const std::string& choice : spec.choices) EXPECT_TRUE(takes(spec, choice)) << choice;
  for (const std::string text : {"axb", "a.", "", "truex", "gr\xc3"}) EXPECT_FALSE(takes(spec, text)) << text;
  EXPECT_EQ(refusal({.kind = GrammarKind::kChoice}).code, ErrorCode::kInvalidArgument);
}

TEST(Lark, SchemasAndSpecialTokensWithinAGrammar) {
  const GrammarSpec spec{.kind = GrammarKind::kLark,
                         .text = "start: \"say: \" /[a-z]+/ | call\ncall: <|tool|> %json {\"type\":\"boolean\"} // \"%json\n"};
  EXPECT_TRUE(takes(spec, "say: hi"));
  EXPECT_FALSE(takes(spec, "say: "));
  EXPECT_FALSE(takes(spec, "<|tool|>true"));  // the token is not its text
  auto matcher = Matcher::create(*compile(spec, bytes()));
  ASSERT_TRUE(matcher->accept(ByteTokenizer::kTool));
  ASSERT_TRUE(matcher->accept(ByteTokenizer::kWord));
  EXPECT_TRUE(*matcher->may_end());
}

TEST(Lark, WhatWouldBeIgnoredIsRefusedByName) {
  const auto message = [](std::string text) { return refusal({.kind = GrammarKind::kLark, .text = std::move(text)}).message; };
  EXPECT_THAT(message("start: %json {\"type\":\"array\",\"uniqueItems\":true}"), HasSubstr("uniqueItems"));
  EXPECT_THAT(message("start: %json {\"x-guidance\":{\"lenient\":true},\"not\":{}}"), HasSubstr("not"));
  EXPECT_THAT(message("%llguidance {\"allow_invalid_utf8\":true}\nstart: \"a\""), HasSubstr("%llguidance"));
  EXPECT_THAT(message("start: a\na[temperature=0.5]: /x+/"), HasSubstr("temperature"));
  EXPECT_THAT(message("start: missing"), HasSubstr("missing"));
  EXPECT_THAT(message("start: <|nothing|>"), HasSubstr("nothing"));
}

TEST(Vocabulary, PaddingIsNeverAllowed) {
  auto matcher = Matcher::create(*compile({.kind = GrammarKind::kRegex, .text = "(?s).*"}, bytes()));
  const auto mask = matcher->mask();
  ASSERT_TRUE(mask);
  ASSERT_EQ(mask->size(), 9u);
  EXPECT_EQ((*mask)[8] >> 2, 1u);  // of the tokens from 258 on only the end
  EXPECT_FALSE(matcher->accept(259));
}

TEST(GrammarCache, KeepsTheOnesUsedLastAndRefusalsToo) {
  GrammarCache cache(bytes(), 2);
  const auto spec = [](std::string text) { return GrammarSpec{.kind = GrammarKind::kRegex, .text = std::move(text)}; };
  const auto first = cache.get(spec("a"));
  EXPECT_EQ(*cache.get(spec("a")), *first);
  EXPECT_FALSE(cache.get(spec("(")));
  EXPECT_EQ(*cache.get(spec("a")), *first);
  ASSERT_TRUE(cache.get(spec("b")));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(*cache.get(spec("a")), *first);
  ASSERT_TRUE(cache.get(spec("c")));
  ASSERT_TRUE(cache.get(spec("d")));
  EXPECT_NE(*cache.get(spec("a")), *first);
  (*first)->set_failed();
  const auto again = cache.get(spec("a"));
  (*again)->set_failed();
  EXPECT_NE(*cache.get(spec("a")), *again);
}

TEST(GrammarCache, ManyThreadsShareGrammarsAndVocabulary) {
  GrammarCache cache(Vocabulary::create(std::make_shared<ByteTokenizer>(), 259), 4);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        const auto grammar = cache.get({.kind = GrammarKind::kRegex, .text = fmt::format("a{{{}}}b*", (t + i) % 6 + 1)});
        auto matcher = Matcher::create(*grammar);
        good += matcher->accept('a').has_value() && matcher->mask().has_value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 48);
}

std::string nested(std::string_view open, std::string_view inner, std::string_view close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += inner;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

// Each is refused, or compiles and gives masks or an error; none hangs or ends the process.
TEST(Hostile, GrammarsComeBack) {
  std::string many = "{\"enum\":[0";
  for (int i = 1; i < 15'000; ++i) many += fmt::format(",\"{:x}\"", i * 2654435761u);
  many += "]}";
  std::string doubling = "{\"$ref\":\"#/$defs/a0\",\"$defs\":{";
  for (int i = 0; i < 40; ++i) {
    doubling += fmt::format("\"a{}\":{{\"anyOf\":[{{\"$ref\":\"#/$defs/a{}\"}},{{\"$ref\":\"#/$defs/a{}\"}}]}},", i, i + 1, i + 1);
  }
  doubling += "\"a40\":{\"type\":\"null\"}}}";
  std::string product = "{\"allOf\":[";
  for (int i = 0; i < 20; ++i) product += R"({"anyOf":[{"minimum":1},{"maximum":9},{"type":"string"}]},)";
  product += "true]}";
  const std::vector<GrammarSpec> specs{
      {.kind = GrammarKind::kRegex, .text = "(a+)+b"},
      {.kind = GrammarKind::kRegex, .text = "(a|a)*(a|aa)*c"},
      {.kind = GrammarKind::kRegex, .text = "(.*a.{500}){3}"},
      {.kind = GrammarKind::kRegex, .text = "((a{100}){100}){100}"},
      {.kind = GrammarKind::kRegex, .text = "(.{0,9999}x){0,9999}"},
      {.kind = GrammarKind::kRegex, .text = nested("(", "a", ")", 5'000)},
      {.kind = GrammarKind::kRegex, .text = "[ab]*a[ab]{40}c"},
      {.kind = GrammarKind::kJsonSchema, .text = nested("{\"items\":", "{}", "}", 100)},
      {.kind = GrammarKind::kJsonSchema, .text = nested("{\"items\":", "{}", "}", 100'000)},
      {.kind = GrammarKind::kJsonSchema, .text = many},
      {.kind = GrammarKind::kJsonSchema, .text = doubling},
      {.kind = GrammarKind::kJsonSchema, .text = product},
      {.kind = GrammarKind::kJsonSchema, .text = R"({"type":"string","minLength":99999,"maxLength":99999})"},
      {.kind = GrammarKind::kJsonSchema, .text = R"({"type":"array","minItems":99999,"items":{"type":"array","minItems":99999}})"},
      {.kind = GrammarKind::kLark, .text = "start: start start | \"a\" | "},
      {.kind = GrammarKind::kLark, .text = "start: a\na: a a a a | \"x\"\n"},
      {.kind = GrammarKind::kLark, .text = nested("start: (", "\"a\"", ")*", 3)},
      {.kind = GrammarKind::kLark, .text = "start: " + nested("(", "\"a\"", ")", 20'000)},
      {.kind = GrammarKind::kLark, .text = "start: /(a?){9999}a{9999}/"},
  };
  for (const GrammarSpec& spec : specs) {
    SCOPED_TRACE(spec.text.substr(0, 60));
    const auto grammar = compile(spec, bytes());
    if (!grammar) continue;
    auto matcher = Matcher::create(*grammar);
    ASSERT_TRUE(matcher);
    for (int i = 0; i < 20; ++i) {
      const auto mask = matcher->mask();
      if (!mask) break;
      TokenId token = 'a';
      while (token < 258 && !((*mask)[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1u)) ++token;
      if (!matcher->accept(token)) break;
    }
  }
}

}  // namespace
}  // namespace weir::grammar
