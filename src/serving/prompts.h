// SPDX-License-Identifier: Apache-2.0
// From a request to what the model reads. Special tokens come from the chat template alone: where a client's text spells one, it stays
// text. For that, such spellings are replaced by words that occur nowhere before the template runs; afterwards the rendered text is cut at
// the template's own special tokens and what lies between is encoded with the spellings put back, as plain text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/generation_request.h"
#include "api/response_writer.h"
#include "engine/loaded_model.h"

namespace weir::serving {

// The texts of a vocabulary's control tokens, to be found in other texts: the longest at each place.
class ControlTokens {
 public:
  explicit ControlTokens(const tokenizer::Tokenizer& tokenizer);

  struct Found {
    std::size_t at = std::string_view::npos, size = 0;
    TokenId id = 0;
  };
  // The first at or behind `from`.
  Found find(std::string_view text, std::size_t from = 0) const;

 private:
  struct Entry {
    std::string text;
    TokenId id;
  };
  std::vector<Entry> by_first_[256];  // the longest first
};

class PromptMaker {
 public:
  // `loaded` must outlive it.
  explicit PromptMaker(const engine::LoadedModel& loaded);

  // One prompt for each of the request's, or the conversation's. Errors name the field.
  api::ApiResult<std::vector<api::AnswerContext::Prompt>> make(const api::GenerationRequest& request) const;

 private:
  api::ApiResult<api::AnswerContext::Prompt> make_chat(const api::GenerationRequest& request) const;
  api::ApiResult<api::AnswerContext::Prompt> make_text(const api::PromptInput& input, const api::GenerationRequest& request,
                                                       std::size_t index) const;
  json::Object context_of(const api::GenerationRequest& request, json::Array messages) const;
  std::vector<TokenId> encode_apart(std::string_view rendered, const std::vector<std::string>& spellings) const;

  const engine::LoadedModel& loaded_;
  std::unique_ptr<const ControlTokens> controls_;  // null without a tokenizer
};

// Replaces control tokens' spellings in all texts of `value` by marks; mark(i) stands for spellings[i].
void hide_control_tokens(json::Value& value, const ControlTokens& controls, std::vector<std::string>& spellings);
std::string mark_of(std::size_t index);
// Marks in the text become what they stand for again.
std::string with_spellings(std::string_view text, const std::vector<std::string>& spellings);

}  // namespace weir::serving
