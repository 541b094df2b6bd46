// SPDX-License-Identifier: Apache-2.0
#include "store/source.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "store/names.h"
#include "store/url.h"

namespace weir::store {
namespace {

constexpr std::string_view kHuggingFace = "https://huggingface.co";
constexpr int kMaxParts = 1000;

// "model-00001-of-00003.gguf" → every part's name; any other name → itself.
std::vector<std::string> parts_of(const std::string& file) {
  const std::string lower = lower_case(file);
  const std::size_t of = lower.rfind("-of-");
  const auto digits = [&](std::size_t at) {
    return std::ranges::all_of(lower.substr(at, 5), [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  if (!lower.ends_with(".gguf") || of == std::string::npos || of < 6 || lower.size() != of + 14 || lower[of - 6] != '-' ||
      !digits(of - 5) || !digits(of + 4))
    return {file};
  const int count = std::stoi(lower.substr(of + 4, 5));
  if (count < 1 || count > kMaxParts) return {file};
  std::vector<std::string> parts;
  for (int i = 1; i <= count; ++i) parts.push_back(file.substr(0, of - 5) + fmt::format("{:05}", i) + file.substr(of));
  return parts;
}

std::string last_component(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// The name a file gives its model: without ending and without the number of a split file's first part.
std::string model_name_of(const std::string& file) {
  std::string name = last_component(file);
  if (lower_case(name).ends_with(".gguf")) name.resize(name.size() - 5);
  const std::size_t of = name.rfind("-00001-of-");
  if (of != std::string::npos) name.resize(of);
  return name;
}

Result<Recipe> finish(Recipe recipe, std::string_view name, const std::string& suggested) {
  recipe.entry.name = name.empty() ? suggested : std::string(name);
  if (Status good = check_model_name(recipe.entry.name); !good)
    return std::unexpected(Error{good.error().code, good.error().message + "; choose a name with --name"});
  if (!recipe.whole_folder && recipe.entry.entry_point().empty())
    return fail(ErrorCode::kUnsupported,
                "'{}' is not a model file Weir can run: give a .gguf file, or hf:OWNER/REPO for a whole model folder", recipe.source);
  return recipe;
}

Result<Recipe> from_hugging_face(std::string_view what, std::string_view name) {
  WEIR_ASSIGN(HuggingFaceName hf, HuggingFaceName::parse(what));
  Recipe recipe{.entry = {}, .source = std::string(what), .whole_folder = {}};
  if (hf.file.empty()) {
    const std::string suggested = last_component(hf.repo);
    recipe.whole_folder = std::move(hf);
    return finish(std::move(recipe), name, suggested);
  }
  for (const std::string& part : parts_of(hf.file)) {
    CatalogueFile file;
    file.name = last_component(part);
    file.url = hf.url_of(part);
    WEIR_TRY(check_file_name(file.name));
    recipe.entry.files.push_back(std::move(file));
  }
  return finish(std::move(recipe), name, model_name_of(hf.file));
}

Result<Recipe> from_url(std::string_view what, std::string_view name) {
  WEIR_ASSIGN(const Url url, Url::parse(what));
  Recipe recipe{.entry = {}, .source = url.shown(), .whole_folder = {}};
  const std::string first = url.file_name();
  const std::size_t at = url.text().find(first);
  for (const std::string& part : parts_of(first)) {
    CatalogueFile file;
    file.name = part;
    file.url = url.text();
    if (part != first && at != std::string::npos) file.url.replace(at, first.size(), part);
    WEIR_TRY(check_file_name(file.name));
    recipe.entry.files.push_back(std::move(file));
  }
  return finish(std::move(recipe), name, model_name_of(first));
}

std::unexpected<Error> unknown(std::string_view what, const Catalogue& catalogue) {
  std::vector<std::string> known;
  for (const CatalogueEntry& entry : catalogue.entries()) known.push_back(entry.name);
  std::string hint;
  for (const std::string& name : similar_names(what, known)) hint += (hint.empty() ? "; did you mean " : " or ") + name;
  return fail(ErrorCode::kNotFound,
              "the catalogue has no model '{}'{} (weir list shows all; hf:OWNER/REPO/FILE.gguf and https://… work too)", what, hint);
}

}  // namespace

std::string hugging_face_endpoint() {
  const char* mirror = std::getenv("HF_ENDPOINT");
  std::string endpoint = mirror && *mirror ? mirror : std::string(kHuggingFace);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

Result<HuggingFaceName> HuggingFaceName::parse(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::kInvalidArgument, "write it as hf:OWNER/REPO/FILE, hf:OWNER/REPO@REVISION/FILE or hf:OWNER/REPO");
  };
  if (text.starts_with("hf:")) text.remove_prefix(3);
  const std::size_t owner_end = text.find('/');
  if (owner_end == std::string_view::npos) return bad();
  const std::size_t repo_end = std::min(text.find('/', owner_end + 1), text.size());
  HuggingFaceName name;
  std::string_view repo = text.substr(0, repo_end);
  name.revision = "main";
  if (const std::size_t mark = repo.find('@'); mark != std::string_view::npos) {
    name.revision = std::string(repo.substr(mark + 1));
    repo = repo.substr(0, mark);
    if (!check_model_name(name.revision)) return bad();
  }
  name.repo = std::string(repo);
  if (!check_model_name(repo.substr(0, owner_end)) || repo.size() <= owner_end || !check_model_name(repo.substr(owner_end + 1)))
    return bad();
  if (repo_end < text.size()) {
    name.file = std::string(text.substr(repo_end + 1));
    WEIR_TRY(check_file_name(name.file));
  }
  return name;
}

std::string HuggingFaceName::url_of(std::string_view file_name) const {
  return fmt::format("{}/{}/resolve/{}/{}", hugging_face_endpoint(), repo, revision, file_name);
}

Result<Recipe> recipe_for(std::string_view what, std::string_view name, const Catalogue& catalogue) {
  if (what.starts_with("hf:")) return from_hugging_face(what, name);
  if (what.find("://") != std::string_view::npos) return from_url(what, name);
  const CatalogueEntry* entry = catalogue.find(what);
  if (!entry) return unknown(what, catalogue);
  Recipe recipe{.entry = *entry, .source = entry->name, .from_catalogue = true, .whole_folder = {}};
  for (CatalogueFile& file : recipe.entry.files) file.url = mirrored(file.url);
  return finish(std::move(recipe), name, entry->name);
}

std::string token_for(const std::string& url) {
  const char* token = std::getenv("HF_TOKEN");
  if (!token || !*token) return {};
  const Result<Url> ours = Url::parse(url), endpoint = Url::parse(hugging_face_endpoint());
  if (!ours || !endpoint || !ours->same_origin(*endpoint)) return {};
  const std::string_view text(token);
  const bool clean = std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });  // or it could forge headers
  return clean ? std::string(text) : std::string();
}

std::string mirrored(const std::string& url) {
  const std::string endpoint = hugging_face_endpoint();
  if (endpoint == kHuggingFace || !url.starts_with(std::string(kHuggingFace) + "/")) return url;
  return endpoint + url.substr(kHuggingFace.size());
}

}  // namespace weir::store
