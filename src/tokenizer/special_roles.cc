// SPDX-License-Identifier: Apache-2.0
// Lists of texts. Models disagree on a few of them, which the two exceptions below settle.
#include "tokenizer/special_roles.h"

#include <algorithm>
#include <string_view>

namespace weir::tokenizer {
namespace {

// The first of these in the vocabulary ends a turn.
constexpr std::string_view kEndOfTurn[] = {"<|eot_id|>",        "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
                                           "<|end_of_text|>",   "<EOT>",      "_<EOT>",  "[EOT]",         "<｜end▁of▁sentence｜>",
                                           "<end_of_utterance>"};

// Any of these ends an answer.
constexpr std::string_view kEnds[] = {"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
                                      "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
                                      "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>",
                                      "<｜end▁of▁sentence｜>", "[e~[",
                                      // A new file or repository, or padding, of fill-in-the-middle models.
                                      "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>",
                                      "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>"};

// Harmony and Solar write <|end|> between the messages of one answer.
bool end_is_inner(const Vocabulary& vocabulary) {
  const auto has = [&](std::string_view text) { return vocabulary.find(text).has_value(); };
  const bool call = has("<|call|>") || has("<|calls|>");
  return call && (has("<|return|>") || has("<|flush|>"));
}

bool ends_answer(const Vocabulary& vocabulary, std::string_view text) {
  if (text == "<|end|>") return !end_is_inner(vocabulary);
  if (text == "</s>") return !vocabulary.find("<|tool_response>");  // an ordinary word there
  return true;
}

}  // namespace

void find_end_tokens(Vocabulary& vocabulary, SpecialRoles& roles) {
  auto& ends = roles.end_of_generation;
  const auto add = [&](std::optional<TokenId> id) {
    if (!id || !vocabulary.contains(*id)) return;
    ends.push_back(*id);
    if (vocabulary.kind(*id) == TokenKind::kNormal) vocabulary.set_kind(*id, TokenKind::kControl);
  };
  for (std::string_view text : kEndOfTurn) {
    if (!roles.eot && ends_answer(vocabulary, text)) roles.eot = vocabulary.find(text);
  }
  add(roles.eos);
  add(roles.eot);
  for (std::string_view text : kEnds) {
    if (ends_answer(vocabulary, text)) add(vocabulary.find(text));
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

}  // namespace weir::tokenizer
