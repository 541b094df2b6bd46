// SPDX-License-Identifier: Apache-2.0
#include "mlperf/scoring.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>

namespace weir::mlperf {
namespace {

constexpr std::string_view kKelvin = "\xE2\x84\xAA", kDottedI = "\xC4\xB0";  // the two letters elsewhere that become ASCII in lower case

Overlap overlap(double common, double reference, double answer) {
  Overlap o;
  if (answer > 0) o.precision = common / answer;
  if (reference > 0) o.recall = common / reference;
  if (o.precision + o.recall > 0) o.f1 = 2 * o.precision * o.recall / (o.precision + o.recall);
  return o;
}

// How often each run of n words comes; words are joined by a byte that none of them holds.
std::unordered_map<std::string, std::int64_t> runs(const std::vector<std::string>& words, std::size_t n) {
  std::unordered_map<std::string, std::int64_t> counts;
  for (std::size_t i = 0; i + n <= words.size(); ++i) {
    std::string run;
    for (std::size_t j = 0; j < n; ++j) run += words[i + j] + ' ';
    ++counts[run];
  }
  return counts;
}

// Words as numbers, so that comparing them is cheap.
std::vector<std::int32_t> number(const std::vector<std::string>& words, std::unordered_map<std::string, std::int32_t>& numbers) {
  std::vector<std::int32_t> out;
  out.reserve(words.size());
  for (const std::string& word : words) out.push_back(numbers.emplace(word, static_cast<std::int32_t>(numbers.size())).first->second);
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

std::vector<std::string> rouge_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= 'A' && c <= 'Z') {
      word += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    } else if (text.substr(i).starts_with(kKelvin)) {
      word += 'k';
      i += kKelvin.size() - 1;
    } else if (text.substr(i).starts_with(kDottedI)) {
      word += 'i';
      end_word();  // what follows the i is a combining dot
      i += kDottedI.size() - 1;
    } else {
      end_word();
    }
  }
  end_word();
  return words;
}

Overlap rouge_n(const std::vector<std::string>& reference, const std::vector<std::string>& answer, int n) {
  const auto size = static_cast<std::size_t>(n);
  const auto wanted = runs(reference, size), given = runs(answer, size);
  std::int64_t common = 0;
  for (const auto& [run, count] : wanted)
    if (const auto found = given.find(run); found != given.end()) common += std::min(count, found->second);
  const auto total = [&](const std::vector<std::string>& words) {
    return words.size() < size ? 0.0 : static_cast<double>(words.size() - size + 1);
  };
  return overlap(static_cast<double>(common), total(reference), total(answer));
}

Overlap rouge_l(const std::vector<std::string>& reference, const std::vector<std::string>& answer) {
  std::unordered_map<std::string, std::int32_t> numbers;
  const std::vector<std::int32_t> a = number(reference, numbers), b = number(answer, numbers);
  std::vector<std::int32_t> row(b.size() + 1, 0);
  for (const std::int32_t word : a) {
    std::int32_t diagonal = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::int32_t above = row[j + 1];
      row[j + 1] = word == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return overlap(row.back(), static_cast<double>(a.size()), static_cast<double>(b.size()));
}

bool exact_match(std::string_view reference, std::string_view answer) { return trimmed(reference) == trimmed(answer); }

Score score(std::string_view reference, std::string_view answer) {
  const std::vector<std::string> r = rouge_words(reference), a = rouge_words(answer);
  return {
      .exact = exact_match(reference, answer), .rouge1 = rouge_n(r, a, 1).f1, .rouge2 = rouge_n(r, a, 2).f1, .rouge_l = rouge_l(r, a).f1};
}

}  // namespace weir::mlperf
