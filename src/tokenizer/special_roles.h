// SPDX-License-Identifier: Apache-2.0
// Which tokens end an answer, for files that do not say: known by their text.
#pragma once

#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace weir::tokenizer {

// Fills eot (when absent) and end_of_generation from eos, eot and the well-known end tokens. Tokens that end an answer become
// control tokens of the vocabulary.
void find_end_tokens(Vocabulary& vocabulary, SpecialRoles& roles);

}  // namespace weir::tokenizer
