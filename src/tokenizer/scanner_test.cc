// SPDX-License-Identifier: Apache-2.0
// The scanners are equal to PCRE2 on the expressions that they stand for, on random Unicode text that is dense in what the
// expressions tell apart.
#include "tokenizer/scanner.h"

#include <gmock/gmock.h>

#include <random>

#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/pre_tokenizer_names.h"
#include "tokenizer/regex.h"
#include "tokenizer/scanner_expressions.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// Two characters or so of every class, and those with rules of their own.
constexpr std::u32string_view kDense =
    U"abstmdrevlxABSTMDREVLX''''  "
    U"\t\n\r\v\u0085\u00a0\u2028\u3000019½²Ⅷ٣'s'LL'Ve.,/"
    U"!-_$+=é\u0301ǅÉß中々ʰª\u093e\u20dd한ſ\u200b\u00ad\U0001f600\U0001d400\ue000\u0378\u180e|()`";

std::string random_text(std::mt19937& random) {
  std::u32string text;
  const std::size_t size = random() % 60;
  while (text.size() < size) {
    const auto pick = random() % 8;
    if (pick == 0) {
      const char32_t code = random() % 0x110000;
      if (code < 0xD800 || code >= 0xE000) text += code;
    } else if (pick == 1) {
      text += text.empty() ? U' ' : text.back();
    } else {
      text += kDense[random() % kDense.size()];
    }
  }
  return to_utf8(text);
}

PieceEnds ends_of(std::string_view text, const ScannerRules& rules) {
  PieceEnds ends;
  scan(text, rules, 0, ends);
  return ends;
}

PieceEnds ends_of(std::string_view text, const Regex& regex) {
  PieceEnds ends;
  split_by_regex(text, regex, 0, ends);
  return ends;
}

TEST(Scanner, EqualsEveryExpressionItStandsFor) {
  std::mt19937 random(7);
  for (const ScannerExpression& expression : scanner_expressions()) {
    const auto regex = Regex::compile(expression.regex);
    ASSERT_TRUE(regex) << regex.error().message;
    for (int i = 0; i < 6000; ++i) {
      const std::string text = random_text(random);
      ASSERT_THAT(ends_of(text, expression.rules), ElementsAreArray(ends_of(text, *regex))) << expression.regex << "\n" << text;
    }
  }
}

TEST(Scanner, SingleDigitsEqualTheTwoSteps) {
  std::mt19937 random(8);
  const auto digits = Regex::compile(R"(\p{N})"), rest = Regex::compile(scanner_expressions()[0].regex);
  ASSERT_TRUE(digits && rest);
  const ScannerRules rules{.family = ScannerFamily::kGpt2, .digits = 1, .digits_first = true};
  for (int i = 0; i < 10000; ++i) {
    const std::string text = random_text(random);
    PieceEnds expected;
    std::size_t begin = 0;
    for (std::size_t end : ends_of(text, *digits)) {
      split_by_regex(std::string_view(text).substr(begin, end - begin), *rest, begin, expected);
      begin = end;
    }
    ASSERT_THAT(ends_of(text, rules), ElementsAreArray(expected)) << text;
  }
}

TEST(Scanner, DigitGroupsEqualTheirExpressions) {
  std::mt19937 random(9);
  const std::pair<ScannerFamily, const char*> kFamilies[] = {{ScannerFamily::kDigitGroups3, R"((?=(\d{3})+(?!\d)))"},
                                                             {ScannerFamily::kDigitGroups3AtWordEnd, R"(\d{1,3}(?=(?:\d{3})*\b))"},
                                                             {ScannerFamily::kNumberGroups3, R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))"},
                                                             {ScannerFamily::kNewlineRuns, R"([^\n]+|\n+)"}};
  for (const auto& [family, expression] : kFamilies) {
    const auto regex = Regex::compile(expression);
    ASSERT_TRUE(regex) << regex.error().message;
    for (int i = 0; i < 4000; ++i) {
      std::string text;
      for (int part = 0; part < 4; ++part) text += std::string(random() % 8, '7') + std::string(1, "a _\n."[random() % 5]);
      ASSERT_THAT(ends_of(text, {.family = family}), ElementsAreArray(ends_of(text, *regex))) << expression << "\n" << text;
    }
  }
}

TEST(Scanner, KnownTexts) {
  EXPECT_THAT(ends_of("I'm 12", {.family = ScannerFamily::kGpt2}), ElementsAre(1, 3, 6));
  EXPECT_THAT(ends_of("I'm 12", {.family = ScannerFamily::kGpt2, .digits = 1, .digits_first = true}), ElementsAre(1, 3, 4, 5, 6));
  EXPECT_THAT(ends_of("a   b\n\n c", {.family = ScannerFamily::kGpt2}), ElementsAre(1, 3, 5, 7, 9));
  EXPECT_THAT(ends_of("12345,\n\n  x", {.family = ScannerFamily::kCl100k, .digits = 3}), ElementsAre(3, 5, 8, 9, 11));
  EXPECT_THAT(ends_of("HelloWORLDfoo", {.family = ScannerFamily::kO200k}), ElementsAre(5, 13));
}

TEST(PreTokenizer, EveryNameCompilesAndCoversTheText) {
  std::mt19937 random(10);
  EXPECT_EQ(PreTokenizer::names().size(), 90u);
  for (std::string_view name : PreTokenizer::names()) {
    const auto pre = PreTokenizer::named(name);
    ASSERT_TRUE(pre) << pre.error().message;
    for (int i = 0; i < 200; ++i) {
      const std::string text = random_text(random);
      PieceEnds ends, scratch;
      pre->split(text, ends, scratch);
      std::size_t last = 0;
      for (std::size_t end : ends) {
        ASSERT_GT(end, last) << name;
        last = end;
      }
      ASSERT_EQ(last, text.size()) << name;
    }
  }
}

TEST(PreTokenizer, UnknownNameIsNamed) {
  const auto pre = PreTokenizer::named("no-such");
  ASSERT_FALSE(pre);
  EXPECT_EQ(pre.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(pre.error().message, ::testing::HasSubstr("no-such"));
}

TEST(PreTokenizer, LongTextsTakeLinearTime) {
  // Quadratic splitting of a megabyte would take hours; that this test ends is what it shows.
  for (std::string_view name : PreTokenizer::names()) {
    const auto pre = PreTokenizer::named(name);
    ASSERT_TRUE(pre);
    for (const std::string_view unit : {"a", " ", "7", "A", "\n", "!", "中", "\u0301", " \n", "'s"}) {
      std::string text;
      while (text.size() < (128u << 10)) text += unit;
      text += "x";
      PieceEnds ends, scratch;
      pre->split(text, ends, scratch);
      ASSERT_EQ(ends.back(), text.size());
    }
  }
}

TEST(Regex, MeansWhatOnigurumaMeans) {
  const auto matches = [](std::string_view expression, std::string_view text) {
    const auto regex = Regex::compile(expression);
    EXPECT_TRUE(regex) << regex.error().message;
    const auto match = regex->find(text, 0);
    return match ? std::string(text.substr(match->begin, match->end - match->begin)) : "nothing";
  };
  EXPECT_EQ(matches(R"(\s+)", "a\u180e\u2003\u0085b"), "\u2003\u0085");  // U+180E is no white space
  EXPECT_EQ(matches(R"(\h+)", "xyzFf09"), "Ff09");                       // hexadecimal digits
  EXPECT_EQ(matches(R"(a$)", "a\nb"), "a");                              // the end of any line
  EXPECT_EQ(matches(R"(^b)", "a\nb"), "b");
  EXPECT_EQ(matches(R"([\w]+)", "-a\u0301_⅞"), "a\u0301_");
  EXPECT_EQ(matches(R"([\w]+)", "-½"), "½");  // a number of Latin-1
  EXPECT_EQ(matches(R"(\u4e2d)", "x中"), "中");
  EXPECT_EQ(matches(R"((?i:'S))", "'ſ"), "'ſ");
  EXPECT_EQ(matches(R"(x{,2})", "xxx"), "xx");
}

TEST(Regex, RefusesWhatPcre2ReadsOtherwise) {
  for (const char* expression :
       {R"([a[b]])", R"([a&&b])", R"(a{2}+)", R"(\K)", R"(\R)", R"(\g<1>)", R"((?<n>a))", R"(a(?i)b)", R"(\1)", "(", "[a"}) {
    EXPECT_FALSE(Regex::compile(expression)) << expression;
  }
}

TEST(Regex, HostileExpressionsEnd) {
  const auto regex = Regex::compile(R"((a+)+$)");
  ASSERT_TRUE(regex);
  EXPECT_FALSE(regex->find(std::string(5000, 'a') + "b", 0));
}

}  // namespace
}  // namespace weir::tokenizer
