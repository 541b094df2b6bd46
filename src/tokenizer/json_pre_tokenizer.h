// SPDX-License-Identifier: Apache-2.0
// The "pre_tokenizer" of a tokenizer.json: steps that cut pieces, drop some, and (Metaspace, ByteLevel) rewrite spaces. Steps
// that only cut are given to the scanners where one is equal. A step that is not known is an error.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tokenizer/json_normalizer.h"
#include "tokenizer/scanner.h"

namespace weir::tokenizer {

// A text and the pieces of it that are left.
struct Pieces {
  struct Piece {
    std::size_t begin, end;
    bool first;  // begins where the user's text begins
  };
  std::string text;
  std::vector<Piece> list;
};

enum class SplitBehavior : std::uint8_t { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

class JsonPreTokenizer {
 public:
  static Result<JsonPreTokenizer> parse(const json::Value* value);  // null: no steps

  bool byte_level() const { return byte_level_; }
  void apply(Pieces& pieces) const;

  // Buffers of apply() that keep their memory live in the object's caller: see Scratch.
 private:
  enum class CharacterSet : std::uint8_t { kWhiteSpace, kPunctuation, kNumber };
  struct SplitScan {
    ScannerRules rules;
  };
  struct SplitPattern {
    Pattern pattern;
    SplitBehavior behavior;
    bool invert;
  };
  struct SplitCharacters {
    CharacterSet set;
    SplitBehavior behavior;
  };
  struct Words {};  // runs of \w and runs of [^\w\s]; white space goes
  struct Metaspace {
    std::string replacement;
    enum class Prepend : std::uint8_t { kAlways, kFirst, kNever } prepend;
    bool split;
  };
  struct PrefixSpace {};
  using Step = std::variant<SplitScan, SplitPattern, SplitCharacters, Words, Metaspace, PrefixSpace>;
  struct Found {
    std::size_t begin, end;
    bool match;
  };

  Status add(const json::Value& value, int depth);
  Status add_split(const json::Object& object);
  Status add_metaspace(const json::Object& object);
  Status add_byte_level(const json::Object& object);
  Status add_characters(const json::Object& object, std::string_view type);

  static void find(const Step& step, std::string_view text, std::vector<Found>& found);
  static void cut(const Step& step, SplitBehavior behavior, bool invert, Pieces& pieces);
  static void scan_pieces(const ScannerRules& rules, Pieces& pieces);
  static void rewrite(const Metaspace& step, Pieces& pieces);
  static void prefix_space(Pieces& pieces);

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace weir::tokenizer
