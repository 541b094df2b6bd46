// SPDX-License-Identifier: Apache-2.0
// Tokenizer vectors: JSON lines of {text, ids_plain, ids_special, … or ids}; what the tokenizer gives must be equal, and decode
// back to the text where the vector says that it can.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "eval/report.h"
#include "tokenizer/tokenizer.h"

namespace weir::eval {

// ids_plain: no special tokens added or parsed; ids_special: special tokens written in the text are parsed; ids_special_addbos: and
// BOS, EOS and the like are added; ids: parsed as `parse_special` says, none added. "roundtrip": true asks that decoding
// ids_plain gives the text back.
Result<FileReport> run_token_cases(const tokenizer::Tokenizer& tokenizer, const std::filesystem::path& file, bool parse_special);

}  // namespace weir::eval
