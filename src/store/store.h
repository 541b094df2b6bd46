// SPDX-License-Identifier: Apache-2.0
// Where models live on this machine: plain folders below $WEIR_HOME/models, one per model, each with a manifest.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/manifest.h"
#include "store/progress.h"

namespace weir::store {

// Held while a model's folder is changed, by one process at a time.
class ModelLock {
 public:
  ModelLock(ModelLock&& other) noexcept;
  ModelLock& operator=(ModelLock&&) = delete;
  ~ModelLock();

 private:
  friend class Store;
  explicit ModelLock(int fd) : fd_(fd) {}
  int fd_;
};

struct InstalledModel {
  std::string name;
  Manifest manifest;    // empty when it cannot be read
  std::string problem;  // empty = ready to use
};

class Store {
 public:
  explicit Store(std::filesystem::path root) : root_(std::move(root)) {}
  // $WEIR_HOME, else $XDG_DATA_HOME/weir, else ~/.local/share/weir. The folder need not exist yet.
  static Result<Store> standard();

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path folder(std::string_view name) const { return root_ / "models" / name; }

  std::vector<InstalledModel> list() const;                          // by name; unfinished and damaged ones say what is wrong
  Result<InstalledModel> find(std::string_view name) const;          // case does not matter; also by the source it was pulled from
  std::filesystem::path path_of(const InstalledModel& model) const;  // what the loaders open

  // Waits while another process holds it (and says so once), until the watcher stops it.
  Result<ModelLock> lock(std::string_view name, const Watcher& watcher) const;

  // Removes the model, finished or not; returns the bytes freed. An error when it is not here or is being pulled.
  Result<std::uint64_t> remove(std::string_view name) const;

 private:
  InstalledModel inspect(const std::string& name) const;
  Result<int> open_lock_file(std::string_view name) const;

  std::filesystem::path root_;
};

}  // namespace weir::store
