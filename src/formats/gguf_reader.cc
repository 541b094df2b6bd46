// SPDX-License-Identifier: Apache-2.0
// Opening files and their parts, and the typed access to metadata. Parsing itself is in gguf_parser.cc.
#include "formats/gguf_reader.h"

#include <cmath>
#include <limits>

#include "formats/gguf_parser.h"
#include "formats/gguf_split.h"
#include "formats/tensor_layout.h"

namespace weir::formats {
namespace {

std::unexpected<Error> wrong_kind(std::string_view what, std::string_view key, std::string_view wanted, std::string_view type) {
  return fail(ErrorCode::kCorrupt, "{}: the key {} should be {} but is {}", what, in_quotes(key), wanted, type);
}

}  // namespace

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string_view what) { return GgufParser(bytes, what).parse(); }

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  WEIR_ASSIGN(auto map, MappedFile::open(path));
  WEIR_ASSIGN(GgufFile file, parse(map->bytes(), path.string()));
  file.index_.add_file(std::move(map));
  WEIR_ASSIGN(const std::int64_t parts, file.get_int_or("split.count", 1));
  if (parts <= 1) return file;
  return open_parts(std::move(file), path, parts);
}

// `given` is any one of the parts; the first part's metadata counts.
Result<GgufFile> GgufFile::open_parts(GgufFile given, const std::filesystem::path& path, std::int64_t count) {
  WEIR_ASSIGN(const SplitName name, parse_split_name(path, count));
  std::vector<GgufFile> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::filesystem::path part_path = split_path(name.prefix, i, count);
    GgufFile part;
    if (i == name.part) {
      part = std::move(given);
    } else {
      auto map = MappedFile::open(part_path);
      if (!map) return std::unexpected(std::move(map).error().with_context(fmt::format("part {} of {}", i + 1, count)));
      WEIR_ASSIGN(part, parse((*map)->bytes(), part_path.string()));
      part.index_.add_file(std::move(*map));
    }
    WEIR_ASSIGN(const std::int64_t number, part.get_int("split.no"));
    WEIR_ASSIGN(const std::int64_t stated, part.get_int("split.count"));
    if (number != i || stated != count)
      return fail(ErrorCode::kCorrupt, "{}: it says that it is part {} of {}, its name says part {} of {}", part_path.string(), number + 1,
                  stated, i + 1, count);
    parts.push_back(std::move(part));
  }
  return join(std::move(parts));
}

Result<GgufFile> GgufFile::join(std::vector<GgufFile> parts) {
  GgufFile whole = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    whole.index_.add_file(parts[i].index_.files().front());
    for (const NamedTensor& tensor : parts[i].index_.tensors()) {
      auto added = whole.index_.add({tensor.name, tensor.view, static_cast<int>(i)});
      if (!added) return std::unexpected(std::move(added).error().with_context(parts[i].what_));
    }
  }
  WEIR_ASSIGN(const std::int64_t stated, whole.get_int("split.tensors.count"));
  if (stated != static_cast<std::int64_t>(whole.index_.tensors().size()))
    return fail(ErrorCode::kCorrupt, "{}: split.tensors.count is {}, the {} parts have {} tensors", whole.what_, stated, parts.size(),
                whole.index_.tensors().size());
  return whole;
}

const GgufEntry* GgufFile::entry(std::string_view key) const {
  const auto position = by_key_.find(key);
  return position == by_key_.end() ? nullptr : &metadata_[position->second];
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const GgufEntry* found = entry(key);
  return found ? &found->value : nullptr;
}

Result<const GgufEntry*> GgufFile::required(std::string_view key) const {
  const GgufEntry* found = entry(key);
  if (!found) return fail(ErrorCode::kCorrupt, "{}: the key {} is missing", what_, in_quotes(key));
  return found;
}

Result<std::int64_t> GgufFile::get_int(std::string_view key) const {
  WEIR_ASSIGN(const GgufEntry* found, required(key));
  if (const auto* value = std::get_if<std::int64_t>(&found->value)) return *value;
  const auto* value = std::get_if<std::uint64_t>(&found->value);
  if (!value) return wrong_kind(what_, key, "an integer", found->type_name);
  if (*value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return fail(ErrorCode::kCorrupt, "{}: the key {} is {}, which is too large", what_, in_quotes(key), *value);
  return static_cast<std::int64_t>(*value);
}

Result<double> GgufFile::get_double(std::string_view key) const {
  WEIR_ASSIGN(const GgufEntry* found, required(key));
  if (const auto* value = std::get_if<double>(&found->value)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&found->value)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&found->value)) return static_cast<double>(*value);
  return wrong_kind(what_, key, "a number", found->type_name);
}

Result<bool> GgufFile::get_bool(std::string_view key) const {
  WEIR_ASSIGN(const GgufEntry* found, required(key));
  if (const auto* value = std::get_if<bool>(&found->value)) return *value;
  return wrong_kind(what_, key, "a boolean", found->type_name);
}

Result<std::string> GgufFile::get_string(std::string_view key) const {
  WEIR_ASSIGN(const GgufEntry* found, required(key));
  if (const auto* value = std::get_if<std::string>(&found->value)) return *value;
  return wrong_kind(what_, key, "a string", found->type_name);
}

Result<std::int64_t> GgufFile::get_int_or(std::string_view key, std::int64_t fallback) const {
  return has(key) ? get_int(key) : Result<std::int64_t>(fallback);
}
Result<double> GgufFile::get_double_or(std::string_view key, double fallback) const {
  return has(key) ? get_double(key) : Result<double>(fallback);
}
Result<bool> GgufFile::get_bool_or(std::string_view key, bool fallback) const { return has(key) ? get_bool(key) : Result<bool>(fallback); }
Result<std::string> GgufFile::get_string_or(std::string_view key, std::string fallback) const {
  return has(key) ? get_string(key) : Result<std::string>(std::move(fallback));
}

const GgufArray* GgufFile::find_array(std::string_view key) const {
  const GgufValue* value = find(key);
  return value ? std::get_if<GgufArray>(value) : nullptr;
}

const std::vector<std::string>* GgufFile::get_strings(std::string_view key) const {
  const GgufArray* array = find_array(key);
  return array ? std::get_if<std::vector<std::string>>(array) : nullptr;
}

std::optional<std::vector<std::int64_t>> GgufFile::get_ints(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (!array) return std::nullopt;
  if (const auto* values = std::get_if<std::vector<std::int64_t>>(array)) return *values;
  if (const auto* values = std::get_if<std::vector<bool>>(array)) return std::vector<std::int64_t>(values->begin(), values->end());
  const auto* values = std::get_if<std::vector<std::uint64_t>>(array);
  if (!values) return std::nullopt;
  for (const std::uint64_t value : *values)
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return std::vector<std::int64_t>(values->begin(), values->end());
}

std::optional<std::vector<double>> GgufFile::get_doubles(std::string_view key) const {
  const GgufArray* array = find_array(key);
  if (!array) return std::nullopt;
  if (const auto* values = std::get_if<std::vector<double>>(array)) return *values;
  if (const auto* values = std::get_if<std::vector<std::int64_t>>(array)) return std::vector<double>(values->begin(), values->end());
  if (const auto* values = std::get_if<std::vector<std::uint64_t>>(array)) return std::vector<double>(values->begin(), values->end());
  return std::nullopt;
}

}  // namespace weir::formats
