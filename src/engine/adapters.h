// SPDX-License-Identifier: Apache-2.0
// The LoRA adapters of one model by name. Any thread loads, finds and unloads; a request holds what it found until it ends, so an
// adapter is never changed under a sequence, and leaves memory with the last of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/adapter.h"

namespace weir::engine {

struct NamedAdapter {
  std::string name;
  std::filesystem::path path;
  std::string digest;  // of its files: prefixes are shared among requests with the same content only
  std::shared_ptr<const model::Adapter> adapter;
};

class Adapters {
 public:
  explicit Adapters(const model::Model& model) : model_(model) {}  // must outlive it

  // kInvalidArgument for an empty name or one in use, else what model::load_adapter() says.
  Status load(const std::string& name, const std::filesystem::path& path) { return load(name, path, Name::kNew); }
  // As load(), and the name then stands for the new one from one moment to the next; on an error the old one stays.
  Status replace(const std::string& name, const std::filesystem::path& path) { return load(name, path, Name::kAny); }
  // kNotFound for a name that is not loaded.
  Status unload(const std::string& name);
  // kNotFound names those that are loaded.
  Result<std::shared_ptr<const NamedAdapter>> find(const std::string& name) const;
  std::vector<std::shared_ptr<const NamedAdapter>> list() const;

 private:
  enum class Name { kNew, kAny };
  Status load(const std::string& name, const std::filesystem::path& path, Name which);

  const model::Model& model_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const NamedAdapter>> by_name_;
};

}  // namespace weir::engine
