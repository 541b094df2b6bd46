// SPDX-License-Identifier: Apache-2.0
// From what a user types to a path: an existing file or folder comes first, then installed names, then advice.
#include "store/resolve.h"

#include <array>
#include <fstream>

#include "store/catalogue.h"
#include "store/names.h"
#include "store/store.h"

namespace weir::store {
namespace {

namespace fs = std::filesystem;

bool is_gguf(const fs::path& path) {
  std::array<char, 4> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) && std::string_view(magic.data(), 4) == "GGUF";
}

bool is_later_part(const std::string& name) {
  const std::size_t of = name.rfind("-of-");
  return of != std::string::npos && of >= 6 && name.substr(of - 6, 6) != "-00001";
}

// A Hugging Face folder, or one that holds exactly one model in GGUF (whose later parts do not count).
Result<fs::path> resolve_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "config.json", error)) return folder;
  std::vector<fs::path> models;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (lower_case(name).ends_with(".gguf") && !is_later_part(name)) models.push_back(it->path());
  }
  if (models.size() == 1) return models.front();
  if (models.empty())
    return fail(ErrorCode::kNotFound, "the folder {} holds no model: neither a config.json (Hugging Face) nor a .gguf file",
                folder.string());
  return fail(ErrorCode::kInvalidArgument, "the folder {} holds {} models; name one of its .gguf files", folder.string(), models.size());
}

std::unexpected<Error> unknown(std::string_view model, const Store& store) {
  if (model.find('/') != std::string_view::npos || lower_case(model).ends_with(".gguf")) {
    if (model.starts_with("hf:") || model.find("://") != std::string_view::npos)
      return fail(ErrorCode::kNotFound, "'{}' is not downloaded yet: weir pull {}", model, model);
    return fail(ErrorCode::kNotFound, "there is no file or folder '{}'", model);
  }
  const Result<Catalogue> catalogue = Catalogue::load();
  if (!catalogue) return std::unexpected(catalogue.error());
  if (const CatalogueEntry* entry = catalogue->find(model))
    return fail(ErrorCode::kNotFound, "the model '{}' is not downloaded yet: weir pull {}", entry->name, entry->name);
  std::vector<std::string> known;
  for (const CatalogueEntry& entry : catalogue->entries()) known.push_back(entry.name);
  for (const InstalledModel& installed : store.list()) known.push_back(installed.name);
  std::string hint;
  for (const std::string& name : similar_names(model, known)) hint += (hint.empty() ? "; did you mean " : " or ") + name;
  return fail(ErrorCode::kNotFound, "no model, file or folder is called '{}'{} (weir list shows what there is)", model, hint);
}

}  // namespace

Result<fs::path> resolve(std::string_view model) {
  WEIR_ASSIGN(const Store store, Store::standard());
  return resolve(model, store);
}

Result<fs::path> resolve(std::string_view model, const Store& store) {
  if (model.empty()) return fail(ErrorCode::kInvalidArgument, "name a model: one of `weir list`, a GGUF file, or a Hugging Face folder");
  const fs::path path(model);
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    if (is_gguf(path)) return path;
    return fail(ErrorCode::kInvalidArgument, "{} is not a GGUF file", path.string());
  }
  const bool is_folder = fs::is_directory(path, error);
  if (is_folder) {
    Result<fs::path> found = resolve_folder(path);
    // A folder that only happens to bear an installed model's name does not hide the model.
    if (found || model.find('/') != std::string_view::npos || !store.find(model)) return found;
  }
  const Result<InstalledModel> installed = store.find(model);
  if (!installed) return unknown(model, store);
  if (!installed->problem.empty())
    return fail(ErrorCode::kNotFound, "the model '{}' cannot be used: {}; weir pull {} repairs it", installed->name, installed->problem,
                installed->manifest.source.empty() ? installed->name : installed->manifest.source);
  return store.path_of(*installed);
}

}  // namespace weir::store
