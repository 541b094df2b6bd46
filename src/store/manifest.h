// SPDX-License-Identifier: Apache-2.0
// What is known of an installed model, kept as manifest.json beside its files: where each file came from, its size and
// checksum, and who vouched for that checksum. A model is installed when its manifest says so and the files are there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::store {

enum class VerifiedBy { kNobody, kServer, kCatalogue };
const char* verified_by_name(VerifiedBy by);  // "nobody", "server", "catalogue"

struct ManifestFile {
  std::string name;    // inside the model's folder
  std::string source;  // URL without its query, or "pypi:package==version/member"
  std::uint64_t size = 0;
  std::string sha256;
  VerifiedBy verified_by = VerifiedBy::kNobody;
};

struct Manifest {
  std::string name, description, licence;
  std::uint64_t parameters = 0;
  std::string source;       // what was asked for: a catalogue name, hf:…, a URL
  std::string entry_point;  // relative to the folder; "." = the folder
  std::string installed;    // UTC, ISO 8601
  bool complete = false;    // false while files are still missing
  std::vector<ManifestFile> files;

  std::uint64_t total_size() const;
  const ManifestFile* find(std::string_view file) const;
};

json::Object to_json(const Manifest& manifest);
Result<Manifest> manifest_from_json(std::string_view text, std::string_view what);

inline constexpr const char* kManifestName = "manifest.json";
Result<Manifest> read_manifest(const std::filesystem::path& model_folder);  // kNotFound when there is none
Status write_manifest(const std::filesystem::path& model_folder, const Manifest& manifest);

}  // namespace weir::store
