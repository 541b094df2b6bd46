// SPDX-License-Identifier: Apache-2.0
#include "formats/sentence_transformers.h"

#include <algorithm>

#include "base/file_io.h"
#include "base/json.h"

namespace weir::formats {
namespace {

constexpr std::uint64_t kMaxBytes = 4 << 20;
constexpr std::size_t kMaxModules = 16, kMaxEntries = 1024;

Result<std::optional<json::Value>> read_optional(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  WEIR_ASSIGN(const std::string text, read_file(path, kMaxBytes));
  WEIR_ASSIGN(json::Value value, json::parse(text, path.string()));
  return std::optional<json::Value>(std::move(value));
}

Result<std::optional<json::Object>> read_optional_object(const std::filesystem::path& path) {
  WEIR_ASSIGN(const auto value, read_optional(path));
  if (!value) return std::nullopt;
  WEIR_ASSIGN(const json::Object* object, json::as_object(*value, path.string()));
  return std::optional<json::Object>(*object);
}

// A folder inside the model's, never beside or above it.
Result<std::filesystem::path> inner_folder(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path inner(name);
  const bool climbs = std::ranges::any_of(inner, [](const std::filesystem::path& part) { return part == ".."; });
  if (inner.is_absolute() || climbs)
    return fail(ErrorCode::kCorrupt, "modules.json: the path \"{}\" leads out of the model's folder", name);
  return folder / inner;
}

Result<SentenceModule> read_module(const std::filesystem::path& folder, const json::Value& value) {
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "modules.json"));
  WEIR_ASSIGN(const std::string type, json::get_string(*object, "type"));
  WEIR_ASSIGN(const std::string path, json::get_string_or(*object, "path", ""));
  WEIR_ASSIGN(std::filesystem::path inner, inner_folder(folder, path));
  return SentenceModule{type.substr(type.rfind('.') + 1), std::move(inner)};
}

Status read_modules(const std::filesystem::path& folder, const json::Value& value, SentenceTransformers& out) {
  if (!value.is_array()) return fail(ErrorCode::kCorrupt, "modules.json: should be a list");
  if (value.get_array().size() > kMaxModules)
    return fail(ErrorCode::kUnsupported, "modules.json lists {} modules", value.get_array().size());
  for (const json::Value& item : value.get_array()) {
    WEIR_ASSIGN(SentenceModule module, read_module(folder, item));
    out.modules.push_back(std::move(module));
  }
  return {};
}

// One flag for each way of pooling ("pooling_mode_mean_tokens"), or one name for all ("pooling_mode").
Status read_pooling(const json::Object& config, SentenceTransformers& out) {
  constexpr std::pair<const char*, const char*> kFlags[] = {{"pooling_mode_cls_token", "cls"},
                                                            {"pooling_mode_max_tokens", "max"},
                                                            {"pooling_mode_mean_tokens", "mean"},
                                                            {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
                                                            {"pooling_mode_weightedmean_tokens", "weightedmean"},
                                                            {"pooling_mode_lasttoken", "lasttoken"}};
  for (const auto& [key, name] : kFlags) {
    WEIR_ASSIGN(const bool on, json::get_bool_or(config, key, false));
    if (on) out.pooling_modes.emplace_back(name);
  }
  WEIR_ASSIGN(const std::string mode, json::get_string_or(config, "pooling_mode", ""));
  if (!mode.empty() && out.pooling_modes.empty()) out.pooling_modes.push_back(mode);
  WEIR_ASSIGN(out.include_prompt, json::get_bool_or(config, "include_prompt", true));
  return {};
}

Status read_prompts(const json::Object& config, SentenceTransformers& out) {
  if (const json::Value* prompts = json::find(config, "prompts")) {
    WEIR_ASSIGN(const json::Object* object, json::as_object(*prompts, "config_sentence_transformers.json: prompts"));
    if (object->size() > kMaxEntries)
      return fail(ErrorCode::kUnsupported, "config_sentence_transformers.json has {} prompts", object->size());
    for (const auto& [name, text] : *object) {
      if (text.is_null()) continue;
      if (!text.is_string())
        return fail(ErrorCode::kCorrupt, "config_sentence_transformers.json: the prompt \"{}\" is not a text", std::string_view(name));
      out.prompts[std::string(name)] = std::string(text.get_string());
    }
  }
  WEIR_ASSIGN(out.default_prompt, json::get_string_or(config, "default_prompt_name", ""));
  if (!out.default_prompt.empty() && !out.prompts.contains(out.default_prompt))
    return fail(ErrorCode::kCorrupt, "config_sentence_transformers.json: default_prompt_name \"{}\" is none of the prompts",
                out.default_prompt);
  return {};
}

Status read_dimensions(const json::Object& config, SentenceTransformers& out) {
  if (const json::Value* list = json::find(config, "matryoshka_dims")) {
    if (!list->is_array() || list->get_array().size() > kMaxEntries)
      return fail(ErrorCode::kCorrupt, "matryoshka_dims is not a short list");
    for (const json::Value& item : list->get_array()) {
      WEIR_ASSIGN(const std::int64_t size, json::to_int(item, "matryoshka_dims"));
      out.dimensions.push_back(size);
    }
  }
  if (json::find(config, "truncate_dim")) {
    WEIR_ASSIGN(out.cut_dimension, json::get_int(config, "truncate_dim"));
  }
  return {};
}

}  // namespace

bool SentenceTransformers::has(std::string_view type) const {
  return std::ranges::any_of(modules, [&](const SentenceModule& m) { return m.type == type; });
}

Result<std::optional<SentenceTransformers>> SentenceTransformers::read(const std::filesystem::path& folder) {
  SentenceTransformers out;
  WEIR_ASSIGN(const auto modules, read_optional(folder / "modules.json"));
  if (modules) WEIR_TRY(read_modules(folder, *modules, out));
  std::filesystem::path pooling_folder = folder / "1_Pooling";
  for (const SentenceModule& module : out.modules)
    if (module.type == "Pooling") pooling_folder = module.folder;
  WEIR_ASSIGN(const auto pooling, read_optional_object(pooling_folder / "config.json"));
  if (!modules && !pooling) return std::nullopt;
  if (pooling) WEIR_TRY(read_pooling(*pooling, out));
  WEIR_ASSIGN(const auto limits, read_optional_object(folder / "sentence_bert_config.json"));
  if (limits && json::find(*limits, "max_seq_length")) {
    WEIR_ASSIGN(out.max_tokens, json::get_int(*limits, "max_seq_length"));
  }
  WEIR_ASSIGN(const auto config, read_optional_object(folder / "config_sentence_transformers.json"));
  if (config) {
    WEIR_TRY(read_prompts(*config, out));
    WEIR_TRY(read_dimensions(*config, out));
  }
  return std::optional<SentenceTransformers>(std::move(out));
}

}  // namespace weir::formats
