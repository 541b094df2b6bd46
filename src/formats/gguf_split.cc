// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_split.h"

#include <charconv>

namespace weir::formats {

std::filesystem::path split_path(const std::filesystem::path& prefix, std::int64_t part, std::int64_t count) {
  std::filesystem::path path = prefix;
  path += fmt::format("-{:05}-of-{:05}.gguf", part + 1, count);
  return path;
}

Result<SplitName> parse_split_name(const std::filesystem::path& path, std::int64_t count) {
  const std::string name = path.filename().string();
  const std::string ending = fmt::format("-of-{:05}.gguf", count);
  const auto not_a_part = [&] {
    return fail(
        ErrorCode::kCorrupt,
        "{}: it is one part of {}, but its name is not NAME-00001-of-{:05}.gguf, so the others cannot be found; give it its name back",
        path.string(), count, count);
  };
  if (!name.ends_with(ending)) return not_a_part();
  const std::string stem = name.substr(0, name.size() - ending.size());
  const std::size_t dash = stem.rfind('-');
  if (dash == std::string::npos || stem.size() - dash - 1 < 5) return not_a_part();
  std::int64_t number = 0;
  const char* end = stem.data() + stem.size();
  const auto [stop, error] = std::from_chars(stem.data() + dash + 1, end, number);
  if (error != std::errc() || stop != end || number < 1 || number > count) return not_a_part();
  SplitName split{path.parent_path() / stem.substr(0, dash), number - 1};
  if (split_path(split.prefix, split.part, count).filename() != path.filename()) return not_a_part();
  return split;
}

}  // namespace weir::formats
