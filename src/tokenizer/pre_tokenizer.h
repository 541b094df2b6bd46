// SPDX-License-Identifier: Apache-2.0
// Cuts a text into the pieces that byte-pair encoding treats alone. GGUF files name the way (tokenizer.ggml.pre); a table says
// what each name means: steps that each cut the pieces of the one before.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "tokenizer/regex.h"
#include "tokenizer/scanner.h"

namespace weir::tokenizer {

// What a GGUF file leaves to its pre-tokeniser's name, beyond the cutting.
struct PreTokenizerTraits {
  bool ignore_merges = false;
  bool add_bos = false;             // when the file does not say
  bool byte_level = true;           // else characters, with spaces written as U+2581
  bool newline_runs_whole = false;  // a run of newlines that is a token stays whole (gemma4)
};

class PreTokenizer {
 public:
  // By the name in tokenizer.ggml.pre. kUnsupported naming an unknown one.
  static Result<PreTokenizer> named(std::string_view name);
  static std::vector<std::string_view> names();

  const PreTokenizerTraits& traits() const { return traits_; }

  // Replaces `ends` by the ends of the pieces of valid UTF-8. `scratch` holds a step's input between calls.
  void split(std::string_view text, PieceEnds& ends, PieceEnds& scratch) const;

 private:
  using Step = std::variant<ScannerRules, Regex>;

  PreTokenizerTraits traits_;
  std::vector<Step> steps_;
};

// Appends the ends of matches and of the gaps between them.
void split_by_regex(std::string_view text, const Regex& regex, std::size_t base, PieceEnds& ends);

// The scanner that is equal to an expression, if there is one.
std::optional<ScannerRules> scanner_for(std::string_view regex);

}  // namespace weir::tokenizer
