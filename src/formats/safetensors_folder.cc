// SPDX-License-Identifier: Apache-2.0
// A folder's weights: one file, or shards. The index comes from outside as well: it may name files of its own folder only, and
// every tensor it promises must be where it says.
#include <map>

#include "base/file_io.h"
#include "base/json.h"
#include "formats/json_duplicates.h"
#include "formats/safetensors.h"
#include "formats/tensor_layout.h"

namespace weir::formats {
namespace {

constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";

using ShardTensors = std::map<std::string, std::vector<std::string>>;  // shard file → names of its tensors

bool is_plain_file_name(std::string_view name) {
  return name.ends_with(".safetensors") && name.find_first_of("/\\") == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

Result<ShardTensors> read_index(const std::filesystem::path& path) {
  const std::string what = path.string();
  WEIR_ASSIGN(const std::string text, read_file(path));
  WEIR_ASSIGN(const json::Value root, json::parse(text, what, {.max_depth = 8}));
  if (const auto key = find_duplicate_key(text)) return fail(ErrorCode::kCorrupt, "{}: {} occurs twice", what, in_quotes(*key));
  const json::Value* map = root.is_object() ? json::find(root.get_object(), "weight_map") : nullptr;
  if (!map || !map->is_object()) return fail(ErrorCode::kCorrupt, "{}: 'weight_map' is missing or no object", what);
  ShardTensors shards;
  for (const auto& member : map->get_object()) {
    if (!member.value().is_string()) return fail(ErrorCode::kCorrupt, "{}: the file of {} is no string", what, in_quotes(member.key()));
    const std::string_view shard = member.value().get_string();
    if (!is_plain_file_name(shard))
      return fail(ErrorCode::kCorrupt, "{}: {} is said to be in {}; only the name of a .safetensors file of the same folder is allowed",
                  what, in_quotes(member.key()), in_quotes(shard));
    shards[std::string(shard)].emplace_back(member.key());
  }
  if (shards.empty()) return fail(ErrorCode::kCorrupt, "{}: 'weight_map' is empty", what);
  return shards;
}

Status add_shard(TensorIndex& index, const std::filesystem::path& path, const std::vector<std::string>& names) {
  WEIR_ASSIGN(const SafetensorsFile shard, SafetensorsFile::open(path));
  const int first_file = static_cast<int>(index.files().size());
  for (const auto& part : shard.index().files()) index.add_file(part);
  for (const std::string& name : names) {
    const NamedTensor* tensor = shard.tensor(name);
    if (!tensor) return fail(ErrorCode::kCorrupt, "{}: the index promises tensor {} here, but it is not", path.string(), in_quotes(name));
    WEIR_TRY(index.add({tensor->name, tensor->view, first_file + tensor->file}));
  }
  return {};
}

Result<TensorIndex> open_shards(const std::filesystem::path& folder) {
  WEIR_ASSIGN(const ShardTensors shards, read_index(folder / kIndexName));
  for (const auto& [shard, names] : shards) {
    std::error_code ignored;
    if (!std::filesystem::exists(folder / shard, ignored))
      return fail(ErrorCode::kNotFound, "{}: the shard {} is missing; {} names {} shards", folder.string(), in_quotes(shard), kIndexName,
                  shards.size());
  }
  TensorIndex index;
  for (const auto& [shard, names] : shards) WEIR_TRY(add_shard(index, folder / shard, names));
  return index;
}

}  // namespace

Result<TensorIndex> open_safetensors_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder / kSingleName, ignored)) {
    WEIR_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(folder / kSingleName));
    return file.index();
  }
  if (std::filesystem::exists(folder / kIndexName, ignored)) return open_shards(folder);
  if (std::filesystem::exists(folder / "pytorch_model.bin", ignored) ||
      std::filesystem::exists(folder / "pytorch_model.bin.index.json", ignored))
    return fail(ErrorCode::kUnsupported, "{}: its weights are pickled (pytorch_model.bin); convert them to safetensors", folder.string());
  return fail(ErrorCode::kNotFound, "{}: neither {} nor {} is there", folder.string(), kSingleName, kIndexName);
}

}  // namespace weir::formats
