// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_folder.h"

#include "base/file_io.h"
#include "formats/safetensors.h"

namespace weir::formats {
namespace {

constexpr std::uint64_t kMaxConfigBytes = 64u << 20;  // tokenizer_config.json lists added tokens and may reach megabytes

// The text of a file that need not exist.
Result<std::optional<std::string>> read_optional(const std::filesystem::path& path, std::uint64_t limit) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  WEIR_ASSIGN(std::string text, read_file(path, limit));
  return std::optional<std::string>(std::move(text));
}

Result<std::optional<json::Object>> read_optional_object(const std::filesystem::path& path) {
  WEIR_ASSIGN(const auto text, read_optional(path, kMaxConfigBytes));
  if (!text) return std::nullopt;
  WEIR_ASSIGN(json::Value value, json::parse(*text, path.string(), {.allow_non_finite = true}));
  if (!value.is_object()) return fail(ErrorCode::kCorrupt, "{}: should be a JSON object", path.string());
  return std::optional<json::Object>(std::move(value.get_object()));
}

// A template may be a string, or a list of named ones of which "default" is for chats.
std::optional<std::string> template_of(const json::Object& tokenizer_config) {
  const json::Value* value = json::find(tokenizer_config, "chat_template");
  if (!value) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  if (!value->is_array()) return std::nullopt;
  for (const json::Value& item : value->get_array()) {
    if (!item.is_object()) continue;
    const json::Value* name = json::find(item.get_object(), "name");
    const json::Value* text = json::find(item.get_object(), "template");
    if (name && text && name->is_string() && text->is_string() && name->get_string() == "default") return std::string(text->get_string());
  }
  return std::nullopt;
}

}  // namespace

bool HfFolder::looks_like(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path / "config.json", ignored);
}

Result<HfFolder> HfFolder::open_without_weights(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return fail(ErrorCode::kNotFound, "{} is not a folder", path.string());
  HfFolder folder;
  folder.path = path;
  WEIR_ASSIGN(auto config, read_optional_object(path / "config.json"));
  if (!config) return fail(ErrorCode::kNotFound, "{}: there is no config.json, so it is not a model folder", path.string());
  folder.config = std::move(*config);
  WEIR_ASSIGN(folder.generation_config, read_optional_object(path / "generation_config.json"));
  WEIR_ASSIGN(folder.tokenizer_config, read_optional_object(path / "tokenizer_config.json"));
  WEIR_ASSIGN(folder.tokenizer_json, read_optional(path / "tokenizer.json", 256u << 20));
  WEIR_ASSIGN(folder.chat_template, read_optional(path / "chat_template.jinja", kMaxConfigBytes));
  if (!folder.chat_template && folder.tokenizer_config) folder.chat_template = template_of(*folder.tokenizer_config);
  return folder;
}

Result<HfFolder> HfFolder::open(const std::filesystem::path& path) {
  WEIR_ASSIGN(HfFolder folder, open_without_weights(path));
  WEIR_ASSIGN(folder.index, open_safetensors_folder(path));
  return folder;
}

}  // namespace weir::formats
