// SPDX-License-Identifier: Apache-2.0
// How near an answer is to its reference: exact match and ROUGE (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"), with
// the details of the rouge_score package that MLPerf's own scripts use: lower case, runs of a-z and 0-9 are words, F1 of n-gram counts
// clipped to the reference's, F1 of the longest common subsequence of words. Words are not stemmed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::mlperf {

std::vector<std::string> rouge_words(std::string_view text);

struct Overlap {
  double precision = 0, recall = 0, f1 = 0;
};
Overlap rouge_n(const std::vector<std::string>& reference, const std::vector<std::string>& answer, int n);
Overlap rouge_l(const std::vector<std::string>& reference, const std::vector<std::string>& answer);

// Equal but for white space around them.
bool exact_match(std::string_view reference, std::string_view answer);

struct Score {
  bool exact = false;
  double rouge1 = 0, rouge2 = 0, rouge_l = 0;  // F1, 0..1
};
Score score(std::string_view reference, std::string_view answer);

}  // namespace weir::mlperf
