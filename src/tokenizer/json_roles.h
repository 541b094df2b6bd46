// SPDX-License-Identifier: Apache-2.0
// What tokenizer_config.json and config.json say about special tokens: their roles, whether BOS and EOS are added, the chat
// template.
#pragma once

#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace weir::tokenizer {

// Either file may be null. Adds BOS and EOS to prefix and suffix where the configuration asks for what the post_processor lacks,
// and takes them out for the classes of tokenizers that set their post_processor by the configuration.
Status load_json_roles(const json::Object* tokenizer_config, const json::Object* config, const Vocabulary& vocabulary, SpecialRoles& roles,
                       std::vector<TokenId>& prefix, std::vector<TokenId>& suffix);

}  // namespace weir::tokenizer
