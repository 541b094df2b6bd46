// SPDX-License-Identifier: Apache-2.0
// Layout and rules after the format's README (huggingface/safetensors).
#include "formats/safetensors.h"

#include <algorithm>
#include <new>

#include "base/json.h"
#include "formats/byte_cursor.h"
#include "formats/json_duplicates.h"
#include "formats/tensor_layout.h"

namespace weir::formats {

namespace {
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the official reader's limit
constexpr std::size_t kMaxRank = 8;
constexpr std::size_t kMaxDepth = 8;
}  // namespace

class SafetensorsParser {
 public:
  SafetensorsParser(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}
  Result<SafetensorsFile> parse();

 private:
  struct Entry {
    std::string name;
    DType type = DType::kF32;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0, end = 0;
  };

  Result<std::string_view> read_header();
  Status read_metadata(const json::Value& value);
  Result<Entry> read_entry(std::string_view name, const json::Value& value) const;
  Result<DType> read_type(const json::Object& object) const;
  Result<std::vector<std::int64_t>> read_integers(const json::Object& object, std::string_view key, std::size_t most) const;
  Status check_layout(std::vector<Entry>& entries) const;

  std::span<const std::byte> bytes_, data_;
  std::string what_;
  SafetensorsFile file_;
};

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes, std::string_view what) {
  try {
    return SafetensorsParser(bytes, what).parse();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kExhausted, "{}: not enough memory for its header", what);
  }
}

namespace {

// Vectorised loops assume that a float lies at a multiple of its size.
bool aligned(const NamedTensor& tensor) {
  const auto size = static_cast<std::uintptr_t>(dtype_info(tensor.view.type).block_bytes);
  return reinterpret_cast<std::uintptr_t>(tensor.view.bytes.data()) % size == 0;
}

}  // namespace

// Today's writers order and pad so that tensors are aligned in the map. Others did not; such tensors are read into memory.
Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  WEIR_ASSIGN(const auto map, MappedFile::open(path));
  WEIR_ASSIGN(SafetensorsFile file, parse(map->bytes(), path.string()));
  TensorIndex index;
  index.add_file(map);
  for (NamedTensor tensor : file.index_.tensors()) {
    if (!aligned(tensor)) {
      const auto offset = static_cast<std::uint64_t>(tensor.view.bytes.data() - map->bytes().data());
      WEIR_ASSIGN(auto part, MappedFile::read_part(path, offset, tensor.view.bytes.size()));
      tensor.view.bytes = part->bytes();
      tensor.file = static_cast<int>(index.files().size());
      index.add_file(std::move(part));
    }
    WEIR_TRY(index.add(std::move(tensor)));
  }
  file.index_ = std::move(index);
  return file;
}

Result<SafetensorsFile> SafetensorsParser::parse() {
  WEIR_ASSIGN(const std::string_view header, read_header());
  WEIR_ASSIGN(const json::Value root, json::parse(header, what_ + ": header", {.max_bytes = kMaxHeaderBytes, .max_depth = kMaxDepth}));
  if (const auto key = find_duplicate_key(header))
    return fail(ErrorCode::kCorrupt, "{}: {} occurs twice in the header", what_, in_quotes(*key));
  if (!root.is_object()) return fail(ErrorCode::kCorrupt, "{}: the header is no JSON object", what_);
  std::vector<Entry> entries;
  for (const auto& member : root.get_object()) {
    if (member.key() == "__metadata__") {
      WEIR_TRY(read_metadata(member.value()));
      continue;
    }
    auto entry = read_entry(member.key(), member.value());
    if (!entry) return std::unexpected(std::move(entry).error().with_context(fmt::format("{}: tensor {}", what_, in_quotes(member.key()))));
    entries.push_back(std::move(*entry));
  }
  WEIR_TRY(check_layout(entries));
  for (Entry& entry : entries) {
    const auto bytes = data_.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(entry.end - entry.begin));
    WEIR_TRY(file_.index_.add({std::move(entry.name), {entry.type, std::move(entry.shape), bytes}, 0}));
  }
  return std::move(file_);
}

Result<std::string_view> SafetensorsParser::read_header() {
  ByteCursor cursor(bytes_);
  std::uint64_t length = 0;
  std::string_view header;
  if (!cursor.read(length)) return fail(ErrorCode::kCorrupt, "{}: {} bytes are too few for a safetensors file", what_, bytes_.size());
  const std::string_view start(reinterpret_cast<const char*>(bytes_.data()), std::min<std::size_t>(bytes_.size(), 32));
  if (start.starts_with("version https://git-lfs"))
    return fail(ErrorCode::kCorrupt, "{}: it is a Git LFS pointer; fetch the real file with `git lfs pull`", what_);
  if (length > kMaxHeaderBytes)
    return fail(ErrorCode::kCorrupt, "{}: a header of {} bytes, {} are allowed; is it a safetensors file?", what_, length, kMaxHeaderBytes);
  if (!cursor.take(length, header))
    return fail(ErrorCode::kCorrupt, "{}: a header of {} bytes in a file of {}; is the download complete?", what_, length, bytes_.size());
  if (!header.starts_with('{')) return fail(ErrorCode::kCorrupt, "{}: the header does not begin with '{{'", what_);
  data_ = bytes_.subspan(cursor.position());
  return header;
}

Status SafetensorsParser::read_metadata(const json::Value& value) {
  if (!value.is_object()) return fail(ErrorCode::kCorrupt, "{}: '__metadata__' is no JSON object", what_);
  for (const auto& member : value.get_object()) {
    if (!member.value().is_string())
      return fail(ErrorCode::kCorrupt, "{}: '__metadata__' has {}, which is no string", what_, in_quotes(member.key()));
    file_.metadata_.emplace(member.key(), member.value().get_string());
  }
  return {};
}

Result<DType> SafetensorsParser::read_type(const json::Object& object) const {
  WEIR_ASSIGN(const std::string name, json::get_string(object, "dtype"));
  const std::optional<DType> type = dtype_from_safetensors(name);
  if (!type) return fail(ErrorCode::kUnsupported, "the type {} is not supported", in_quotes(name));
  return *type;
}

Result<std::vector<std::int64_t>> SafetensorsParser::read_integers(const json::Object& object, std::string_view key,
                                                                   std::size_t most) const {
  const json::Value* value = json::find(object, key);
  if (!value || !value->is_array()) return fail(ErrorCode::kCorrupt, "'{}' is missing or no array", key);
  const json::Array& array = value->get_array();
  if (array.size() > most) return fail(ErrorCode::kCorrupt, "'{}' has {} numbers, {} are allowed", key, array.size(), most);
  std::vector<std::int64_t> numbers;
  for (const json::Value& item : array) {
    if (!item.is_int64() || item.get_int64() < 0) return fail(ErrorCode::kCorrupt, "'{}' has something that is no count", key);
    numbers.push_back(item.get_int64());
  }
  return numbers;
}

Result<SafetensorsParser::Entry> SafetensorsParser::read_entry(std::string_view name, const json::Value& value) const {
  if (!value.is_object()) return fail(ErrorCode::kCorrupt, "it should be a JSON object");
  const json::Object& object = value.get_object();
  Entry entry;
  entry.name = name;
  WEIR_ASSIGN(entry.type, read_type(object));
  WEIR_ASSIGN(entry.shape, read_integers(object, "shape", kMaxRank));
  WEIR_ASSIGN(const auto offsets, read_integers(object, "data_offsets", 2));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) return fail(ErrorCode::kCorrupt, "'data_offsets' should be [begin, end]");
  entry.begin = static_cast<std::uint64_t>(offsets[0]);
  entry.end = static_cast<std::uint64_t>(offsets[1]);
  if (entry.end > data_.size())
    return fail(ErrorCode::kCorrupt, "it ends at byte {} of {} bytes of data; is the download complete?", entry.end, data_.size());
  WEIR_ASSIGN(const std::uint64_t size, tensor_bytes(entry.type, entry.shape));
  if (entry.end - entry.begin != size)
    return fail(ErrorCode::kCorrupt, "{} {} takes {} bytes, 'data_offsets' gives it {}", dtype_name(entry.type), shape_string(entry.shape),
                size, entry.end - entry.begin);
  return entry;
}

// Sorts the entries into file order.
Status SafetensorsParser::check_layout(std::vector<Entry>& entries) const {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.end != b.end ? a.end < b.end : a.name < b.name;
  });
  std::uint64_t covered = 0;
  const Entry* last = nullptr;
  for (const Entry& entry : entries) {
    if (entry.begin < covered)
      return fail(ErrorCode::kCorrupt, "{}: tensors {} and {} overlap", what_, in_quotes(last->name), in_quotes(entry.name));
    if (entry.begin > covered)
      return fail(ErrorCode::kCorrupt, "{}: bytes {} to {} before tensor {} belong to no tensor", what_, covered, entry.begin,
                  in_quotes(entry.name));
    covered = entry.end;
    last = &entry;
  }
  if (covered != data_.size())
    return fail(ErrorCode::kCorrupt, "{}: {} bytes after the last tensor belong to none", what_, data_.size() - covered);
  return {};
}

}  // namespace weir::formats
