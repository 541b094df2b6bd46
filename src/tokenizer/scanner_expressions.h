// SPDX-License-Identifier: Apache-2.0
// The regular expressions that the scanners are equal to, as tokenizer.json files write them.
#pragma once

#include <span>
#include <string_view>

#include "tokenizer/scanner.h"

namespace weir::tokenizer {

struct ScannerExpression {
  std::string_view regex;
  ScannerRules rules;
};

std::span<const ScannerExpression> scanner_expressions();

}  // namespace weir::tokenizer
