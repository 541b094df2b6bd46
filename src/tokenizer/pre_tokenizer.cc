// SPDX-License-Identifier: Apache-2.0
// Running the steps. The names and their expressions are in pre_tokenizer_names.cc.
#include "tokenizer/pre_tokenizer.h"

#include "tokenizer/pre_tokenizer_names.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {

void split_by_regex(std::string_view text, const Regex& regex, std::size_t base, PieceEnds& ends) {
  std::size_t done = 0, from = 0;
  while (from <= text.size()) {
    const auto match = regex.find(text, from);
    if (!match) break;
    if (match->begin > done) ends.push_back(base + match->begin);
    if (match->end > match->begin) ends.push_back(base + match->end);
    done = std::max(done, match->end);
    from = match->end;
    if (match->end == match->begin) {  // an empty match is a border; look on behind the next character
      if (from == text.size()) break;
      from += utf8_length(text[from]);
    }
  }
  if (done < text.size()) ends.push_back(base + text.size());
}

Result<PreTokenizer> PreTokenizer::named(std::string_view name) {
  const NamedPreTokenizer* found = find_pre_tokenizer(name);
  if (!found) return fail(ErrorCode::kUnsupported, "the pre-tokeniser \"{}\" is not known", name);
  PreTokenizer result;
  result.traits_ = found->traits;
  for (const PreTokenizerStep& step : found->steps) {
    if (const auto* rules = std::get_if<ScannerRules>(&step)) {
      result.steps_.emplace_back(*rules);
    } else {
      WEIR_ASSIGN(Regex regex, Regex::compile(std::get<std::string_view>(step)));
      result.steps_.emplace_back(std::move(regex));
    }
  }
  return result;
}

std::vector<std::string_view> PreTokenizer::names() {
  std::vector<std::string_view> names;
  for (const NamedPreTokenizer& named : named_pre_tokenizers()) names.push_back(named.name);
  return names;
}

void PreTokenizer::split(std::string_view text, PieceEnds& ends, PieceEnds& scratch) const {
  ends.clear();
  if (text.empty()) return;
  if (steps_.empty()) ends.push_back(text.size());
  bool first = true;
  for (const Step& step : steps_) {
    scratch.clear();
    if (first) {
      scratch.push_back(text.size());
    } else {
      scratch.swap(ends);
    }
    ends.clear();
    std::size_t begin = 0;
    for (std::size_t end : scratch) {
      const std::string_view piece = text.substr(begin, end - begin);
      if (const auto* rules = std::get_if<ScannerRules>(&step)) {
        scan(piece, *rules, begin, ends);
      } else {
        split_by_regex(piece, std::get<Regex>(step), begin, ends);
      }
      begin = end;
    }
    first = false;
  }
}

}  // namespace weir::tokenizer
