// SPDX-License-Identifier: Apache-2.0
// The table of pre-tokenisers by name. An expression for which a scanner exists is written as the scanner's rules.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "tokenizer/pre_tokenizer.h"

namespace weir::tokenizer {

using PreTokenizerStep = std::variant<ScannerRules, std::string_view>;

struct NamedPreTokenizer {
  std::string_view name;
  std::span<const PreTokenizerStep> steps;
  PreTokenizerTraits traits;
};

std::span<const NamedPreTokenizer> named_pre_tokenizers();
const NamedPreTokenizer* find_pre_tokenizer(std::string_view name);

}  // namespace weir::tokenizer
