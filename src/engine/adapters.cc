// SPDX-License-Identifier: Apache-2.0
#include "engine/adapters.h"

#include <algorithm>

#include "base/sha256.h"

namespace weir::engine {
namespace {

constexpr std::size_t kMostNamed = 8;  // in a message

Result<std::string> digest_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    // A folder's file given by itself still has its config beside it.
    const auto config = path.parent_path() / "adapter_config.json";
    WEIR_ASSIGN(std::string digest, sha256_of_file(path));
    if (!std::filesystem::exists(config, error)) return digest;
    WEIR_ASSIGN(const std::string other, sha256_of_file(config));
    return digest + other;
  }
  std::string digest;
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
    if (!std::filesystem::exists(path / name, error)) continue;
    WEIR_ASSIGN(const std::string part, sha256_of_file(path / name));
    digest += part;
  }
  return digest;
}

}  // namespace

Status Adapters::load(const std::string& name, const std::filesystem::path& path, Name which) {
  if (name.empty()) return fail(ErrorCode::kInvalidArgument, "an adapter needs a name");
  const auto taken = [&] { return fail(ErrorCode::kInvalidArgument, "an adapter '{}' is loaded already: unload it first", name); };
  {
    const std::lock_guard lock(mutex_);
    if (which == Name::kNew && by_name_.contains(name)) return taken();
  }
  // Before and after: what was read in between is what the digest is of.
  WEIR_ASSIGN(const std::string before, digest_of(path));
  auto named = std::make_shared<NamedAdapter>();
  WEIR_ASSIGN(named->adapter, model::load_adapter(path, model_));
  WEIR_ASSIGN(named->digest, digest_of(path));
  if (named->digest != before) return fail(ErrorCode::kCorrupt, "{}: the file changed while it was read", path.string());
  named->name = name;
  named->path = path;
  std::shared_ptr<const NamedAdapter> now = std::move(named);  // then the one before, freed after the lock
  const std::lock_guard lock(mutex_);
  if (which == Name::kNew && by_name_.contains(name)) return taken();
  std::swap(by_name_[name], now);
  return {};
}

Status Adapters::unload(const std::string& name) {
  std::shared_ptr<const NamedAdapter> gone;  // freed after the lock
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return fail(ErrorCode::kNotFound, "no adapter '{}' is loaded", name);
  gone = std::move(found->second);
  by_name_.erase(found);
  return {};
}

Result<std::shared_ptr<const NamedAdapter>> Adapters::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  std::string names;
  std::size_t count = 0;
  for (const auto& [known, ignored] : by_name_) {
    if (count++ < kMostNamed) names += (names.empty() ? "" : ", ") + known;
  }
  return fail(ErrorCode::kNotFound, "no adapter '{}' is loaded; loaded are: {}", name, names.empty() ? "none" : names);
}

std::vector<std::shared_ptr<const NamedAdapter>> Adapters::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const NamedAdapter>> all;
  for (const auto& [name, adapter] : by_name_) all.push_back(adapter);
  return all;
}

}  // namespace weir::engine
