// SPDX-License-Identifier: Apache-2.0
#include "store/manifest.h"

#include <algorithm>

#include "base/file_io.h"
#include "base/sha256.h"
#include "store/names.h"

namespace weir::store {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::uint64_t kMaxBytes = 4u << 20;

Result<VerifiedBy> verified_by_from_name(const std::string& name) {
  for (VerifiedBy by : {VerifiedBy::kNobody, VerifiedBy::kServer, VerifiedBy::kCatalogue})
    if (name == verified_by_name(by)) return by;
  return fail(ErrorCode::kCorrupt, "unknown 'verified_by'");
}

Result<std::uint64_t> get_size(const json::Object& object, std::string_view key) {
  WEIR_ASSIGN(const std::int64_t value, json::get_int_or(object, key, 0));
  if (value < 0) return fail(ErrorCode::kCorrupt, "'{}' is negative", key);
  return static_cast<std::uint64_t>(value);
}

Result<ManifestFile> file_from_json(const json::Value& value) {
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "files"));
  ManifestFile file;
  WEIR_ASSIGN(file.name, json::get_string(*object, "name"));
  WEIR_TRY(check_file_name(file.name));
  WEIR_ASSIGN(file.source, json::get_string(*object, "source"));
  WEIR_ASSIGN(file.size, get_size(*object, "size"));
  WEIR_ASSIGN(file.sha256, json::get_string(*object, "sha256"));
  if (!is_sha256(file.sha256)) return fail(ErrorCode::kCorrupt, "'sha256' of {} is not one", file.name);
  WEIR_ASSIGN(const std::string by, json::get_string(*object, "verified_by"));
  WEIR_ASSIGN(file.verified_by, verified_by_from_name(by));
  return file;
}

Result<Manifest> from_object(const json::Object& object) {
  WEIR_ASSIGN(const std::int64_t format, json::get_int(object, "format"));
  if (format != kFormat) return fail(ErrorCode::kUnsupported, "written by another version of weir (format {})", format);
  Manifest manifest;
  WEIR_ASSIGN(manifest.name, json::get_string(object, "name"));
  WEIR_TRY(check_model_name(manifest.name));
  WEIR_ASSIGN(manifest.description, json::get_string_or(object, "description", ""));
  WEIR_ASSIGN(manifest.licence, json::get_string_or(object, "licence", ""));
  WEIR_ASSIGN(manifest.parameters, get_size(object, "parameters"));
  WEIR_ASSIGN(manifest.source, json::get_string(object, "source"));
  WEIR_ASSIGN(manifest.installed, json::get_string_or(object, "installed", ""));
  WEIR_ASSIGN(manifest.complete, json::get_bool(object, "complete"));
  WEIR_ASSIGN(manifest.entry_point, json::get_string(object, "entry_point"));
  if (manifest.entry_point != ".") WEIR_TRY(check_file_name(manifest.entry_point));
  const json::Value* files = json::find(object, "files");
  if (!files || !files->is_array()) return fail(ErrorCode::kCorrupt, "'files' should be an array");
  for (const json::Value& value : files->get_array()) {
    WEIR_ASSIGN(ManifestFile file, file_from_json(value));
    manifest.files.push_back(std::move(file));
  }
  return manifest;
}

}  // namespace

const char* verified_by_name(VerifiedBy by) {
  switch (by) {
    case VerifiedBy::kNobody: return "nobody";
    case VerifiedBy::kServer: return "server";
    case VerifiedBy::kCatalogue: return "catalogue";
  }
  return "nobody";
}

std::uint64_t Manifest::total_size() const {
  std::uint64_t total = 0;
  for (const ManifestFile& file : files) total += file.size;
  return total;
}

const ManifestFile* Manifest::find(std::string_view file) const {
  const auto found = std::ranges::find(files, file, &ManifestFile::name);
  return found == files.end() ? nullptr : &*found;
}

json::Object to_json(const Manifest& manifest) {
  json::Array files;
  for (const ManifestFile& file : manifest.files)
    files.push_back(json::Object{{"name", file.name},
                                 {"source", file.source},
                                 {"size", static_cast<std::int64_t>(file.size)},
                                 {"sha256", file.sha256},
                                 {"verified_by", verified_by_name(file.verified_by)}});
  return {{"format", kFormat},
          {"name", manifest.name},
          {"description", manifest.description},
          {"licence", manifest.licence},
          {"parameters", static_cast<std::int64_t>(manifest.parameters)},
          {"source", manifest.source},
          {"entry_point", manifest.entry_point},
          {"installed", manifest.installed},
          {"complete", manifest.complete},
          {"files", std::move(files)}};
}

Result<Manifest> manifest_from_json(std::string_view text, std::string_view what) {
  WEIR_ASSIGN(const json::Value value, json::parse(text, what, {.max_bytes = kMaxBytes, .max_depth = 8}));
  const auto parsed = [&]() -> Result<Manifest> {
    WEIR_ASSIGN(const json::Object* object, json::as_object(value, "manifest"));
    return from_object(*object);
  };
  Result<Manifest> manifest = parsed();
  if (!manifest) return std::unexpected(std::move(manifest).error().with_context(std::string(what)));
  return manifest;
}

Result<Manifest> read_manifest(const std::filesystem::path& model_folder) {
  const auto path = model_folder / kManifestName;
  WEIR_ASSIGN(const std::string text, read_file(path, kMaxBytes));
  return manifest_from_json(text, path.string());
}

Status write_manifest(const std::filesystem::path& model_folder, const Manifest& manifest) {
  return write_file_atomically(model_folder / kManifestName, boost::json::serialize(to_json(manifest)) + "\n");
}

}  // namespace weir::store
