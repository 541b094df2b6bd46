// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/json_roles.h"

#include <algorithm>

namespace weir::tokenizer {
namespace {

struct Role {
  const char* token;  // in tokenizer_config.json: a text, or an object with its "content"
  const char* id;     // in config.json: a number, or a list of them
  std::optional<TokenId> SpecialRoles::* place;
};
constexpr Role kRoles[] = {{"bos_token", "bos_token_id", &SpecialRoles::bos},   {"eos_token", "eos_token_id", &SpecialRoles::eos},
                           {"pad_token", "pad_token_id", &SpecialRoles::pad},   {"unk_token", "unk_token_id", &SpecialRoles::unk},
                           {"sep_token", "sep_token_id", &SpecialRoles::sep},   {"cls_token", "cls_token_id", &SpecialRoles::cls},
                           {"mask_token", "mask_token_id", &SpecialRoles::mask}};

std::optional<TokenId> token_of(const json::Object& config, const char* name, const Vocabulary& vocabulary) {
  const json::Value* value = json::find(config, name);
  if (value && value->is_object()) value = json::find(value->get_object(), "content");
  return value && value->is_string() ? vocabulary.find(value->get_string()) : std::nullopt;
}

// The ids of a number or a list of numbers that are tokens.
std::vector<TokenId> ids_of(const json::Object& config, const char* name, const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  const auto add = [&](const json::Value& value) {
    const auto id = json::to_int(value, name);
    if (id && *id >= 0 && *id < vocabulary.size()) ids.push_back(static_cast<TokenId>(*id));
  };
  const json::Value* value = json::find(config, name);
  if (value && value->is_array()) {
    std::ranges::for_each(value->get_array(), add);
  } else if (value) {
    add(*value);
  }
  return ids;
}

// A text, or a list of named ones, of which "default" is meant.
std::optional<std::string> chat_template_of(const json::Object& config) {
  const json::Value* value = json::find(config, "chat_template");
  if (!value) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  if (!value->is_array()) return std::nullopt;
  for (const json::Value& entry : value->get_array()) {
    if (!entry.is_object()) continue;
    const json::Value* name = json::find(entry.get_object(), "name");
    const json::Value* text = json::find(entry.get_object(), "template");
    if (name && name->is_string() && name->get_string() == "default" && text && text->is_string()) return std::string(text->get_string());
  }
  return std::nullopt;
}

// Classes whose add_bos_token and add_eos_token replace the post_processor of the file.
bool configuration_wins(const json::Object& config) {
  const json::Value* name = json::find(config, "tokenizer_class");
  if (!name || !name->is_string()) return false;
  for (const char* known :
       {"LlamaTokenizer", "LlamaTokenizerFast", "GemmaTokenizer", "GemmaTokenizerFast", "CodeLlamaTokenizer", "CodeLlamaTokenizerFast"}) {
    if (name->get_string() == known) return true;
  }
  return false;
}

Status apply_flags(const json::Object& config, const SpecialRoles& roles, std::vector<TokenId>& prefix, std::vector<TokenId>& suffix) {
  const bool has_bos = roles.bos && !prefix.empty() && prefix.front() == *roles.bos;
  const bool has_eos = roles.eos && !suffix.empty() && suffix.back() == *roles.eos;
  WEIR_ASSIGN(const bool add_bos, json::get_bool_or(config, "add_bos_token", has_bos));
  WEIR_ASSIGN(const bool add_eos, json::get_bool_or(config, "add_eos_token", has_eos));
  if (add_bos && !has_bos && roles.bos) prefix.insert(prefix.begin(), *roles.bos);
  if (add_eos && !has_eos && roles.eos) suffix.push_back(*roles.eos);
  if (!configuration_wins(config)) return {};
  if (!add_bos && has_bos) prefix.erase(prefix.begin());
  if (!add_eos && has_eos) suffix.pop_back();
  return {};
}

}  // namespace

Status load_json_roles(const json::Object* tokenizer_config, const json::Object* config, const Vocabulary& vocabulary, SpecialRoles& roles,
                       std::vector<TokenId>& prefix, std::vector<TokenId>& suffix) {
  for (const Role& role : kRoles) {
    std::optional<TokenId>& place = roles.*role.place;
    if (tokenizer_config) {
      if (const auto id = token_of(*tokenizer_config, role.token, vocabulary)) place = id;
    }
    if (!config) continue;
    const std::vector<TokenId> ids = ids_of(*config, role.id, vocabulary);
    if (!place && !ids.empty()) place = ids.front();
    if (role.place == &SpecialRoles::eos) roles.end_of_generation.insert(roles.end_of_generation.end(), ids.begin(), ids.end());
  }
  if (tokenizer_config) {
    WEIR_TRY(apply_flags(*tokenizer_config, roles, prefix, suffix));
    roles.chat_template = chat_template_of(*tokenizer_config);
  }
  roles.add_bos = roles.bos && std::ranges::find(prefix, *roles.bos) != prefix.end();
  roles.add_eos = roles.eos && std::ranges::find(suffix, *roles.eos) != suffix.end();
  return {};
}

}  // namespace weir::tokenizer
