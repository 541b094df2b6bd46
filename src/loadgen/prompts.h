// SPDX-License-Identifier: Apache-2.0
// What is asked: conversations from a distribution of lengths, a trace, a text, JSONL or ShareGPT. With the model's tokenizer, lengths are
// exact token counts of the text (a chat template adds its own); without one, words stand for tokens and the counts are approximate.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loadgen/plan.h"
#include "loadgen/trace.h"
#include "tokenizer/tokenizer.h"

namespace weir::loadgen {

using TokenizerPtr = std::shared_ptr<const tokenizer::Tokenizer>;

// From a GGUF file or a Hugging Face folder.
Result<TokenizerPtr> load_tokenizer(const std::filesystem::path& path);

// Ordinary words, each one token wherever it stands, so that a text of n words has n tokens.
class Vocabulary {
 public:
  explicit Vocabulary(TokenizerPtr tokenizer);  // null: a small built-in list

  std::int64_t count(std::string_view text) const;               // tokens, or words without a tokenizer
  std::string text(std::int64_t tokens, Random& random) const;   // of exactly so many
  std::string words(std::int64_t tokens, Random& random) const;  // the same, to be put behind another text
  const tokenizer::Tokenizer* tokenizer() const { return tokenizer_.get(); }

 private:
  TokenizerPtr tokenizer_;
  std::vector<std::string> words_;
};

struct PromptOptions {
  std::int64_t count = 1;  // of conversations
  Distribution input_tokens = Distribution::constant(128);
  Distribution output_tokens = Distribution::constant(64);  // max_tokens; 0: not said
  double shared_prefix = 0;                                 // share of each first prompt that is common to its group, 0..1
  std::int64_t prefix_groups = 1;
  Distribution turns = Distribution::constant(1);
  bool chat = true;
  std::uint64_t seed = 1;
};

Result<std::vector<Conversation>> synthetic_prompts(const PromptOptions& options, const Vocabulary& vocabulary);

// One for each entry: its lengths, and equal texts where blocks are equal.
std::vector<Conversation> trace_prompts(const Trace& trace, const PromptOptions& options, const Vocabulary& vocabulary);

// Pieces of a text, cut to the lengths asked for.
Result<std::vector<Conversation>> text_prompts(std::string_view text, const PromptOptions& options, const Vocabulary& vocabulary);

// One object per line: "messages", or "prompt" (also "text", "input", "question"); perhaps "max_tokens" (also "output_tokens",
// "output_length"). Lines repeat when there are fewer than asked for.
Result<std::vector<Conversation>> jsonl_prompts(std::string_view text, const PromptOptions& options);

// The ShareGPT layout: an array of {"conversations": [{"from": "human", "value": …}, {"from": "gpt", "value": …}, …]}. An answer's
// max_tokens is the recorded answer's length. As many turns as `options.turns` draws and the record has.
Result<std::vector<Conversation>> sharegpt_prompts(std::string_view text, const PromptOptions& options, const Vocabulary& vocabulary);

}  // namespace weir::loadgen
