// SPDX-License-Identifier: Apache-2.0
#include "mlperf/scoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mlperf/accuracy.h"

namespace weir::mlperf {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RougeWords, RunsOfLowerCaseLettersAndDigits) {
  EXPECT_THAT(rouge_words("The CAT's 2 mats."), ElementsAre("the", "cat", "s", "2", "mats"));
  EXPECT_THAT(rouge_words("na\xC3\xAFve \xE2\x80\x94 x_y"), ElementsAre("na", "ve", "x", "y"));
  EXPECT_THAT(rouge_words("300 \xE2\x84\xAA"), ElementsAre("300", "k"));  // Python's lower() of the Kelvin sign
  EXPECT_THAT(rouge_words("\xC4\xB0stanbul"), ElementsAre("i", "stanbul"));
  EXPECT_THAT(rouge_words(" .,! "), IsEmpty());
}

// reference: the cat sat on the mat (6 words); answer: the cat the cat sat (5 words)
TEST(Rouge, CountsAreClippedToTheReference) {
  const auto reference = rouge_words("The cat sat on the mat."), answer = rouge_words("the cat the cat sat");
  const Overlap one = rouge_n(reference, answer, 1);  // the 2, cat 1, sat 1 of them
  EXPECT_DOUBLE_EQ(one.precision, 4.0 / 5);
  EXPECT_DOUBLE_EQ(one.recall, 4.0 / 6);
  EXPECT_DOUBLE_EQ(one.f1, 8.0 / 11);                 // 2·4 / (5 + 6)
  const Overlap two = rouge_n(reference, answer, 2);  // "the cat" once, "cat sat" once; 4 and 5 pairs
  EXPECT_DOUBLE_EQ(two.precision, 2.0 / 4);
  EXPECT_DOUBLE_EQ(two.recall, 2.0 / 5);
  EXPECT_DOUBLE_EQ(two.f1, 4.0 / 9);
}

TEST(Rouge, LongestCommonSubsequenceMaySkipWords) {
  const auto reference = rouge_words("police killed the gunman"), answer = rouge_words("the gunman police killed");
  const Overlap l = rouge_l(reference, answer);  // "police killed" or "the gunman"
  EXPECT_DOUBLE_EQ(l.f1, 0.5);
  const Overlap gap = rouge_l(rouge_words("a b c d e"), rouge_words("a x c y e z"));  // a c e
  EXPECT_DOUBLE_EQ(gap.precision, 3.0 / 6);
  EXPECT_DOUBLE_EQ(gap.recall, 3.0 / 5);
}

TEST(Rouge, NothingInCommonOrNothingAtAllIsZero) {
  const auto some = rouge_words("one two"), none = rouge_words("");
  EXPECT_EQ(rouge_n(some, none, 1).f1, 0);
  EXPECT_EQ(rouge_n(none, some, 2).f1, 0);
  EXPECT_EQ(rouge_n(rouge_words("one"), rouge_words("one"), 2).f1, 0);  // too short for a pair
  EXPECT_EQ(rouge_l(some, none).f1, 0);
  EXPECT_EQ(rouge_l(some, rouge_words("three")).f1, 0);
}

TEST(ExactMatch, OnlySpaceAroundIsOverlooked) {
  EXPECT_TRUE(exact_match("42", " 42\n"));
  EXPECT_FALSE(exact_match("42", "42."));
  EXPECT_FALSE(exact_match("a b", "a  b"));
  EXPECT_TRUE(exact_match("", " \n"));
}

Dataset two_samples() {
  return *parse_dataset("{\"prompt\": \"p\", \"answer\": \"one two three four\"}\n{\"prompt\": \"q\", \"answer\": \"five\"}\n", "set");
}

TEST(ScoreLog, MeansAreOverTheSamplesWithAReferenceInPerCent) {
  const std::vector<LoggedAnswer> log = {{.sequence = 0, .sample = 1, .data = "five", .first_token = {}, .tokens = 3},
                                         {.sequence = 1, .sample = 0, .data = "one two x y", .first_token = {}, .tokens = 5}};
  const auto a = score_log(log, two_samples(), [](std::string_view data) { return std::string(data); });
  ASSERT_TRUE(a) << a.error().message;
  EXPECT_EQ(a->missing, 0u);
  EXPECT_DOUBLE_EQ(a->exact_match, 50);
  EXPECT_DOUBLE_EQ(a->rouge1, (50.0 + 100) / 2);
  EXPECT_DOUBLE_EQ(a->rouge2, (100.0 / 3 + 0) / 2);
  EXPECT_DOUBLE_EQ(a->tokens_per_sample, 4);
  EXPECT_EQ(a->characters, 15);
}

TEST(ScoreLog, TellsWhatIsMissingAndRefusesWhatTheDataSetDoesNotHave) {
  const auto text = [](std::string_view data) { return std::string(data); };
  const auto some = score_log({{.sequence = 0, .sample = 0, .data = "x", .first_token = {}, .tokens = 2}}, two_samples(), text);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->missing, 1u);
  EXPECT_FALSE(score_log({{.sequence = 0, .sample = 2, .data = "x", .first_token = {}, .tokens = 2}}, two_samples(), text));
}

}  // namespace
}  // namespace weir::mlperf
