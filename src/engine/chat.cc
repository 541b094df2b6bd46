// SPDX-License-Identifier: Apache-2.0
#include "engine/chat.h"

#include <array>

#include "tokenizer/utf8.h"

namespace weir::engine {

json::Value special_text(const tokenizer::Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? json::Value(tokenizer.token_text(*id)) : json::Value("");
}

std::string valid_text(std::string_view text) {
  std::string buffer;
  return std::string(tokenizer::repair_utf8(text, buffer));
}

Result<std::string> render_chat(const LoadedModel& loaded, const text::Messages& messages) {
  WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded.require_tokenizer());
  if (!loaded.chat_template) return fail(ErrorCode::kUnsupported, "{} has no chat template", loaded.path.string());
  const json::Object context{{"messages", messages.to_json()},
                             {"tools", nullptr},
                             {"add_generation_prompt", true},
                             {"bos_token", special_text(*tokenizer, tokenizer->bos)},
                             {"eos_token", special_text(*tokenizer, tokenizer->eos)}};
  return loaded.chat_template->render(context);
}

std::vector<TokenId> encode_rendered(const tokenizer::Tokenizer& tokenizer, std::string_view rendered) {
  return tokenizer.encode(rendered, {.add_special = false, .parse_special = true});
}

std::string fallback_template_name(const tokenizer::Tokenizer& tokenizer) {
  struct Mark {
    const char* token;
    const char* name;
  };
  static constexpr std::array kMarks{Mark{"<|im_start|>", "chatml"},   Mark{"<|start_header_id|>", "llama3"},
                                     Mark{"<start_of_turn>", "gemma"}, Mark{"<|end|>", "phi3"},
                                     Mark{"[INST]", "mistral"},        Mark{"<|START_OF_TURN_TOKEN|>", "command-r"}};
  for (const Mark& mark : kMarks)
    if (tokenizer.find(mark.token)) return mark.name;
  return "plain";
}

}  // namespace weir::engine
