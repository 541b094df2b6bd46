// SPDX-License-Identifier: Apache-2.0
// From a conversation to the ids that a model reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"
#include "text/messages.h"

namespace weir::engine {

// The text with each maximal ill-formed part of its UTF-8 replaced by U+FFFD, as templates and tokenizers need it.
std::string valid_text(std::string_view text);

// How templates are given bos_token and eos_token: the token's text, empty when the model has none.
json::Value special_text(const tokenizer::Tokenizer& tokenizer, std::optional<TokenId> id);

// The conversation by the model's chat template, ready for the assistant's answer.
Result<std::string> render_chat(const LoadedModel& loaded, const text::Messages& messages);

// Ids of a rendered conversation: special tokens in it are parsed and none are added, since the template writes them all.
std::vector<TokenId> encode_rendered(const tokenizer::Tokenizer& tokenizer, std::string_view rendered);

// The built-in template that fits a vocabulary's special tokens: "chatml", "llama3", …; "plain" when none does.
std::string fallback_template_name(const tokenizer::Tokenizer& tokenizer);

}  // namespace weir::engine
