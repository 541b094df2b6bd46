// SPDX-License-Identifier: Apache-2.0
// Cutting works as in the reference: a step lists matches and gaps of a piece in order, and the behaviour says what becomes of
// the matches. Empty pieces disappear.
#include "tokenizer/json_pre_tokenizer.h"

#include <algorithm>

#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxSteps = 32;

Result<SplitBehavior> parse_behavior(const json::Object& object, std::string_view fallback) {
  WEIR_ASSIGN(const std::string name, json::get_string_or(object, "behavior", std::string(fallback)));
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return fail(ErrorCode::kUnsupported, "the split behavior \"{}\" is not supported", name);
}

}  // namespace

Result<JsonPreTokenizer> JsonPreTokenizer::parse(const json::Value* value) {
  JsonPreTokenizer result;
  if (value) WEIR_TRY(result.add(*value, 0));
  return result;
}

Status JsonPreTokenizer::add(const json::Value& value, int depth) {
  if (byte_level_) return fail(ErrorCode::kUnsupported, "a pre_tokenizer after ByteLevel is not supported");
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "pre_tokenizer"));
  WEIR_ASSIGN(const std::string type, json::get_string(*object, "type"));
  if (type == "Sequence") {
    const json::Value* list = json::find(*object, "pretokenizers");
    if (!list || !list->is_array()) return fail(ErrorCode::kCorrupt, "a pre_tokenizer Sequence without a list of pretokenizers");
    if (depth == kMaxDepth) return fail(ErrorCode::kUnsupported, "pre_tokenizers nested {} deep", depth);
    for (const json::Value& inner : list->get_array()) WEIR_TRY(add(inner, depth + 1));
    return {};
  }
  if (steps_.size() >= kMaxSteps) return fail(ErrorCode::kUnsupported, "more than {} pre_tokenizers", kMaxSteps);
  if (type == "Split") return add_split(*object);
  if (type == "Metaspace") return add_metaspace(*object);
  if (type == "ByteLevel") return add_byte_level(*object);
  return add_characters(*object, type);
}

Status JsonPreTokenizer::add_split(const json::Object& object) {
  const json::Value* pattern = json::find(object, "pattern");
  if (!pattern) return fail(ErrorCode::kCorrupt, "a Split pre_tokenizer without a pattern");
  WEIR_ASSIGN(Pattern compiled, Pattern::parse(*pattern, "the Split pre_tokenizer"));
  WEIR_ASSIGN(const SplitBehavior behavior, parse_behavior(object, "Isolated"));
  WEIR_ASSIGN(const bool invert, json::get_bool_or(object, "invert", false));
  // The scanners cover the whole text with matches, so that keeping only the matches changes nothing.
  const bool keeps_matches = behavior == SplitBehavior::kIsolated || (behavior == SplitBehavior::kRemoved && invert);
  const auto rules = compiled.regex() && keeps_matches ? scanner_for(compiled.regex()->source()) : std::nullopt;
  if (rules) {
    steps_.emplace_back(SplitScan{*rules});
  } else {
    steps_.emplace_back(SplitPattern{std::move(compiled), behavior, invert});
  }
  return {};
}

Status JsonPreTokenizer::add_metaspace(const json::Object& object) {
  Metaspace step{};
  WEIR_ASSIGN(step.replacement, json::get_string(object, "replacement"));
  if (step.replacement.empty() || utf8_length(step.replacement[0]) != step.replacement.size()) {
    return fail(ErrorCode::kCorrupt, "Metaspace's replacement is not one character");
  }
  WEIR_ASSIGN(const bool legacy, json::get_bool_or(object, "add_prefix_space", true));
  WEIR_ASSIGN(const std::string scheme, json::get_string_or(object, "prepend_scheme", legacy ? "always" : "never"));
  if (scheme == "always") {
    step.prepend = Metaspace::Prepend::kAlways;
  } else if (scheme == "first") {
    step.prepend = Metaspace::Prepend::kFirst;
  } else if (scheme == "never") {
    step.prepend = Metaspace::Prepend::kNever;
  } else {
    return fail(ErrorCode::kUnsupported, "Metaspace's prepend_scheme \"{}\" is not supported", scheme);
  }
  WEIR_ASSIGN(step.split, json::get_bool_or(object, "split", true));
  steps_.emplace_back(std::move(step));
  return {};
}

Status JsonPreTokenizer::add_byte_level(const json::Object& object) {
  WEIR_ASSIGN(const bool prefix, json::get_bool_or(object, "add_prefix_space", true));
  WEIR_ASSIGN(const bool use_regex, json::get_bool_or(object, "use_regex", true));
  if (prefix) steps_.emplace_back(PrefixSpace{});
  if (use_regex) steps_.emplace_back(SplitScan{{.family = ScannerFamily::kGpt2}});
  byte_level_ = true;
  return {};
}

Status JsonPreTokenizer::add_characters(const json::Object& object, std::string_view type) {
  if (type == "Digits") {
    WEIR_ASSIGN(const bool single, json::get_bool_or(object, "individual_digits", false));
    steps_.emplace_back(SplitCharacters{CharacterSet::kNumber, single ? SplitBehavior::kIsolated : SplitBehavior::kContiguous});
  } else if (type == "Whitespace") {
    steps_.emplace_back(Words{});
  } else if (type == "WhitespaceSplit") {
    steps_.emplace_back(SplitCharacters{CharacterSet::kWhiteSpace, SplitBehavior::kRemoved});
  } else if (type == "BertPreTokenizer") {
    steps_.emplace_back(SplitCharacters{CharacterSet::kWhiteSpace, SplitBehavior::kRemoved});
    steps_.emplace_back(SplitCharacters{CharacterSet::kPunctuation, SplitBehavior::kIsolated});
  } else if (type == "Punctuation") {
    WEIR_ASSIGN(const SplitBehavior behavior, parse_behavior(object, "Isolated"));
    steps_.emplace_back(SplitCharacters{CharacterSet::kPunctuation, behavior});
  } else if (type == "CharDelimiterSplit") {
    WEIR_ASSIGN(std::string delimiter, json::get_string(object, "delimiter"));
    if (delimiter.empty()) return fail(ErrorCode::kCorrupt, "CharDelimiterSplit without a delimiter");
    steps_.emplace_back(SplitPattern{Pattern(std::move(delimiter)), SplitBehavior::kRemoved, false});
  } else {
    return fail(ErrorCode::kUnsupported, "the pre_tokenizer \"{}\" is not supported", type);
  }
  return {};
}

void JsonPreTokenizer::find(const Step& step, std::string_view text, std::vector<Found>& found) {
  found.clear();
  std::size_t done = 0;
  const auto match = [&](std::size_t begin, std::size_t end) {
    if (begin != done) found.push_back({done, begin, false});
    found.push_back({begin, end, true});
    done = end;
  };
  if (const auto* split = std::get_if<SplitPattern>(&step)) {
    for (std::size_t from = 0; from <= text.size();) {
      const auto next = split->pattern.find(text, from);
      if (!next) break;
      match(next->begin, next->end);
      from = next->end;
      if (next->begin == next->end) from += from < text.size() ? utf8_length(text[from]) : 1;
    }
  } else if (const auto* characters = std::get_if<SplitCharacters>(&step)) {
    for (std::size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
      const char32_t code = code_of_valid_utf8(text.data() + at);
      const bool in = characters->set == CharacterSet::kWhiteSpace ? is_space(code)
                      : characters->set == CharacterSet::kNumber   ? (classes(code) & kNumber) != 0
                                                                   : is_bert_punctuation(code, false);
      if (in) match(at, at + utf8_length(text[at]));
    }
  } else {  // Words
    for (std::size_t at = 0; at < text.size();) {
      const auto kind = [&](std::size_t i) {
        const char32_t code = code_of_valid_utf8(text.data() + i);
        return is_word(code) ? 1 : is_space(code) ? 0 : 2;
      };
      const int here = kind(at);
      std::size_t end = at;
      do end += utf8_length(text[end]);
      while (end < text.size() && kind(end) == here);
      if (here != 0) match(at, end);
      at = end;
    }
  }
  if (done != text.size()) found.push_back({done, text.size(), false});
}

void JsonPreTokenizer::cut(const Step& step, SplitBehavior behavior, bool invert, Pieces& pieces) {
  std::vector<Pieces::Piece> out;
  out.reserve(pieces.list.size() * 2);
  std::vector<Found> found;
  for (const Pieces::Piece& piece : pieces.list) {
    find(step, std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin), found);
    std::vector<Found> kept;
    const auto keep = [&](const Found& f) { kept.push_back(f); };
    bool previous = false;
    if (behavior == SplitBehavior::kMergedWithNext) std::ranges::reverse(found);
    for (Found f : found) {
      f.match ^= invert;
      const bool join =
          !kept.empty() &&
          ((behavior == SplitBehavior::kContiguous && f.match == previous) ||
           ((behavior == SplitBehavior::kMergedWithPrevious || behavior == SplitBehavior::kMergedWithNext) && f.match && !previous));
      if (join && behavior == SplitBehavior::kMergedWithNext) {
        kept.back().begin = f.begin;
      } else if (join) {
        kept.back().end = f.end;
      } else if (!(behavior == SplitBehavior::kRemoved && f.match)) {
        keep(f);
      }
      previous = f.match;
    }
    if (behavior == SplitBehavior::kMergedWithNext) std::ranges::reverse(kept);
    for (const Found& f : kept) {
      if (f.end > f.begin) out.push_back({piece.begin + f.begin, piece.begin + f.end, piece.first && f.begin == 0});
    }
  }
  pieces.list = std::move(out);
}

void JsonPreTokenizer::scan_pieces(const ScannerRules& rules, Pieces& pieces) {
  std::vector<Pieces::Piece> out;
  out.reserve(pieces.text.size() / 4 + pieces.list.size());
  PieceEnds ends;
  for (const Pieces::Piece& piece : pieces.list) {
    ends.clear();
    scan(std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin), rules, piece.begin, ends);
    std::size_t begin = piece.begin;
    for (std::size_t end : ends) {
      out.push_back({begin, end, piece.first && begin == piece.begin});
      begin = end;
    }
  }
  pieces.list = std::move(out);
}

void JsonPreTokenizer::rewrite(const Metaspace& step, Pieces& pieces) {
  Pieces out;
  out.text.reserve(pieces.text.size() * 2);
  for (const Pieces::Piece& piece : pieces.list) {
    const std::size_t begin = out.text.size();
    for (char c : std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin)) {
      if (c == ' ') {
        out.text += step.replacement;
      } else {
        out.text += c;
      }
    }
    const bool wanted = step.prepend == Metaspace::Prepend::kAlways || (step.prepend == Metaspace::Prepend::kFirst && piece.first);
    if (wanted && !std::string_view(out.text).substr(begin).starts_with(step.replacement)) out.text.insert(begin, step.replacement);
    out.list.push_back({begin, out.text.size(), piece.first});
  }
  pieces = std::move(out);
  if (step.split)
    cut(SplitPattern{Pattern(step.replacement), SplitBehavior::kMergedWithNext, false}, SplitBehavior::kMergedWithNext, false, pieces);
}

void JsonPreTokenizer::prefix_space(Pieces& pieces) {
  Pieces out;
  out.text.reserve(pieces.text.size() + pieces.list.size());
  for (const Pieces::Piece& piece : pieces.list) {
    const std::size_t begin = out.text.size();
    const std::string_view text = std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin);
    if (!text.starts_with(' ')) out.text += ' ';
    out.text += text;
    out.list.push_back({begin, out.text.size(), piece.first});
  }
  pieces = std::move(out);
}

void JsonPreTokenizer::apply(Pieces& pieces) const {
  for (const Step& step : steps_) {
    if (const auto* scanner = std::get_if<SplitScan>(&step)) {
      scan_pieces(scanner->rules, pieces);
    } else if (const auto* metaspace = std::get_if<Metaspace>(&step)) {
      rewrite(*metaspace, pieces);
    } else if (std::holds_alternative<PrefixSpace>(step)) {
      prefix_space(pieces);
    } else if (const auto* split = std::get_if<SplitPattern>(&step)) {
      cut(step, split->behavior, split->invert, pieces);
    } else if (const auto* characters = std::get_if<SplitCharacters>(&step)) {
      cut(step, characters->behavior, false, pieces);
    } else {
      cut(step, SplitBehavior::kRemoved, true, pieces);
    }
  }
}

}  // namespace weir::tokenizer
