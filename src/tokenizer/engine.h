// SPDX-License-Identifier: Apache-2.0
// The part of a tokenizer that differs between vocabularies: a stretch of text without special tokens in, ids out.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/json_pre_tokenizer.h"
#include "tokenizer/scanner.h"
#include "tokenizer/unigram.h"

namespace weir::tokenizer {

// A stretch of the text between special tokens.
struct Stretch {
  std::string_view text;       // valid UTF-8, not empty
  bool first = true;           // at the start of the whole text
  bool after_special = false;  // behind a special token
  bool parse_special = false;  // special tokens written in it become their ids
};

// Buffers that a call borrows from the tokenizer, so that encoding allocates nothing once they have grown.
struct Scratch {
  std::string repaired, text, other_text;
  PieceEnds ends, other_ends;
  BpeScratch bpe;
  Unigram::Lattice lattice;
  Pieces pieces;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual void encode(const Stretch& stretch, Scratch& scratch, std::vector<TokenId>& out) const = 0;
  virtual std::string description() const = 0;  // "byte-level BPE, pre-tokeniser smollm"
};

}  // namespace weir::tokenizer
