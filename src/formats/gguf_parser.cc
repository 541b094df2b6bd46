// SPDX-License-Identifier: Apache-2.0
// Layout after the GGUF specification (ggml/docs/gguf.md). All numbers in the file are untrusted: a count is compared with the
// bytes left before anything is reserved for it.
#include "formats/gguf_parser.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "formats/tensor_layout.h"

namespace weir::formats {
namespace {

constexpr std::uint64_t kMaxEntries = 1u << 20;        // metadata entries, and tensors
constexpr std::uint64_t kMaxArrayElements = 1u << 24;  // of all arrays together: what they take in memory stays below 1 GB
constexpr std::uint64_t kMaxNameBytes = 65535;         // keys by the specification; tensor names likewise
constexpr std::uint64_t kMinAlignment = 8, kMaxAlignment = 1u << 20;
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;  // key length, key, type, value
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr int kMaxArrayDepth = 4;
constexpr std::uint32_t kMaxRank = 4;

// By ggml's number; "" where it never had one.
constexpr std::array<std::string_view, 43> kGgmlTypes{
    "F32",      "F16",    "Q4_0",  "Q4_1",       "Q4_2",       "Q4_3",       "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",     "Q2_K",
    "Q3_K",     "Q4_K",   "Q5_K",  "Q6_K",       "Q8_K",       "IQ2_XXS",    "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",   "IQ3_S",
    "IQ2_S",    "IQ4_XS", "I8",    "I16",        "I32",        "I64",        "F64",    "IQ1_M",   "BF16",  "Q4_0_4_4", "Q4_0_4_8",
    "Q4_0_8_8", "TQ1_0",  "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",  "NVFP4",   "Q1_0",  "Q2_0"};

// What a file that does not begin with "GGUF" is likely to be.
std::string_view explain_magic(std::string_view start) {
  if (start.starts_with("version https://git-lfs")) return ": it is a Git LFS pointer; fetch the real file with `git lfs pull`";
  if (start.starts_with("lmgg") || start.starts_with("fmgg") || start.starts_with("tjgg") || start.starts_with("algg"))
    return ": it is a GGML file from before GGUF; convert the model again";
  if (start.starts_with("FUGG")) return ": its bytes are in another order";
  if (start.starts_with("PK")) return ": it is a zip archive";
  return "";
}

}  // namespace

std::string_view ggml_type_label(std::uint32_t id) { return id < kGgmlTypes.size() ? kGgmlTypes[id] : std::string_view(); }

std::unexpected<Error> GgufParser::truncated(std::string_view entry) const {
  return fail(ErrorCode::kCorrupt, "{}: the file ends at byte {} inside {}; is the download complete?", what_, bytes_.size(), entry);
}

Result<GgufFile> GgufParser::parse() {
  try {
    file_.what_ = what_;
    WEIR_TRY(read_header());
    WEIR_TRY(read_counts());
    WEIR_TRY(read_metadata());
    WEIR_TRY(read_alignment());
    WEIR_TRY(read_tensor_entries());
    WEIR_TRY(place_tensors());
    return std::move(file_);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kExhausted, "{}: not enough memory for its metadata", what_);
  }
}

Status GgufParser::read_header() {
  std::string_view magic;
  if (!cursor_.take(4, magic)) return fail(ErrorCode::kCorrupt, "{}: {} bytes are too few for a GGUF file", what_, bytes_.size());
  if (magic != "GGUF") {
    const std::string_view start(reinterpret_cast<const char*>(bytes_.data()), std::min<std::size_t>(bytes_.size(), 32));
    return fail(ErrorCode::kCorrupt, "{}: not a GGUF file{}", what_, explain_magic(start));
  }
  if (!cursor_.read(file_.version_)) return truncated("the version");
  const std::uint32_t version = file_.version_;
  if (version != 0 && (version & 0xffff) == 0)
    return fail(ErrorCode::kUnsupported, "{}: a big-endian GGUF file; convert it to little endian", what_);
  if (version == 1)
    return fail(ErrorCode::kUnsupported, "{}: GGUF version 1, which nothing writes any more; convert the model again", what_);
  if (version != 2 && version != 3)
    return fail(ErrorCode::kUnsupported, "{}: GGUF version {}; versions 2 and 3 can be read", what_, version);
  return {};
}

Status GgufParser::read_counts() {
  if (!cursor_.read(tensor_count_) || !cursor_.read(entry_count_)) return truncated("the counts");
  if (entry_count_ > kMaxEntries || entry_count_ > cursor_.remaining() / kMinEntryBytes)
    return fail(ErrorCode::kCorrupt, "{}: metadata count {} is more than {} bytes can hold", what_, entry_count_, cursor_.remaining());
  if (tensor_count_ > kMaxEntries || tensor_count_ > cursor_.remaining() / kMinTensorBytes)
    return fail(ErrorCode::kCorrupt, "{}: tensor count {} is more than {} bytes can hold", what_, tensor_count_, cursor_.remaining());
  return {};
}

Result<std::string> GgufParser::read_string(std::string_view what) {
  std::uint64_t length = 0;
  std::string_view text;
  if (!cursor_.read(length)) return truncated(what);
  if (!cursor_.take(length, text))
    return fail(ErrorCode::kCorrupt, "{}: {} has a string of {} bytes where {} are left", what_, what, length, cursor_.remaining());
  return std::string(text);
}

Result<GgufType> GgufParser::read_type(std::string_view what) {
  std::uint32_t type = 0;
  if (!cursor_.read(type)) return truncated(what);
  if (type >= kGgufTypeCount) return fail(ErrorCode::kCorrupt, "{}: {} has the unknown type {}", what_, what, type);
  return static_cast<GgufType>(type);
}

Status GgufParser::read_metadata() {
  file_.metadata_.reserve(static_cast<std::size_t>(entry_count_));
  for (std::uint64_t i = 0; i < entry_count_; ++i) WEIR_TRY(read_entry());
  return {};
}

Status GgufParser::read_entry() {
  const std::size_t index = file_.metadata_.size();
  GgufEntry entry;
  WEIR_ASSIGN(entry.key, read_string(fmt::format("the key of metadata entry {}", index + 1)));
  if (entry.key.empty() || entry.key.size() > kMaxNameBytes)
    return fail(ErrorCode::kCorrupt, "{}: the key of metadata entry {} has {} bytes", what_, index + 1, entry.key.size());
  if (!file_.by_key_.try_emplace(entry.key, index).second)
    return fail(ErrorCode::kCorrupt, "{}: the key {} occurs twice", what_, in_quotes(entry.key));
  const std::string shown = in_quotes(entry.key);
  WEIR_ASSIGN(entry.type, read_type(shown));
  if (entry.type == GgufType::kArray) {
    WEIR_ASSIGN(GgufInnerArray array, read_array(shown, 1));
    entry.element_type = array.element;
    entry.value = std::move(array.values);
  } else {
    WEIR_ASSIGN(entry.value, read_scalar(entry.type, shown));
  }
  entry.type_name = gguf_entry_type_name(entry.type, entry.element_type);
  file_.metadata_.push_back(std::move(entry));
  return {};
}

Result<GgufValue> GgufParser::read_scalar(GgufType type, std::string_view key) {
  const auto number = [&]<class Wide, class Narrow>(Wide, Narrow narrow) -> Result<GgufValue> {
    if (!cursor_.read(narrow)) return truncated(key);
    return GgufValue(static_cast<Wide>(narrow));
  };
  switch (type) {
    case GgufType::kU8: return number(std::uint64_t{}, std::uint8_t{});
    case GgufType::kU16: return number(std::uint64_t{}, std::uint16_t{});
    case GgufType::kU32: return number(std::uint64_t{}, std::uint32_t{});
    case GgufType::kU64: return number(std::uint64_t{}, std::uint64_t{});
    case GgufType::kI8: return number(std::int64_t{}, std::int8_t{});
    case GgufType::kI16: return number(std::int64_t{}, std::int16_t{});
    case GgufType::kI32: return number(std::int64_t{}, std::int32_t{});
    case GgufType::kI64: return number(std::int64_t{}, std::int64_t{});
    case GgufType::kF32: return number(double{}, float{});
    case GgufType::kF64: return number(double{}, double{});
    case GgufType::kString: {
      WEIR_ASSIGN(std::string text, read_string(key));
      return GgufValue(std::move(text));
    }
    case GgufType::kBool: {
      WEIR_ASSIGN(const bool truth, read_bool(key));
      return GgufValue(truth);
    }
    case GgufType::kArray: break;
  }
  WEIR_CHECK(false, "arrays are read by read_array");
}

Result<GgufInnerArray> GgufParser::read_array(std::string_view key, int depth) {
  if (depth > kMaxArrayDepth) return fail(ErrorCode::kUnsupported, "{}: {} nests arrays more than {} deep", what_, key, kMaxArrayDepth);
  GgufInnerArray array;
  std::uint64_t count = 0;
  WEIR_ASSIGN(array.element, read_type(key));
  if (!cursor_.read(count)) return truncated(key);
  if (count > cursor_.remaining() / gguf_minimum_size(array.element))
    return fail(ErrorCode::kCorrupt, "{}: {} has {} elements of type {}, more than the {} bytes left can hold", what_, key, count,
                gguf_type_name(array.element), cursor_.remaining());
  array_elements_ += count;
  if (array_elements_ > kMaxArrayElements)
    return fail(ErrorCode::kUnsupported, "{}: with {} the metadata has {} array elements, {} are allowed", what_, key, array_elements_,
                kMaxArrayElements);
  const auto n = static_cast<std::size_t>(count);
  const auto values = [&]() -> Result<GgufArray> {
    switch (array.element) {
      case GgufType::kU8: return read_numbers<std::uint64_t, std::uint8_t>(n, key);
      case GgufType::kU16: return read_numbers<std::uint64_t, std::uint16_t>(n, key);
      case GgufType::kU32: return read_numbers<std::uint64_t, std::uint32_t>(n, key);
      case GgufType::kU64: return read_numbers<std::uint64_t, std::uint64_t>(n, key);
      case GgufType::kI8: return read_numbers<std::int64_t, std::int8_t>(n, key);
      case GgufType::kI16: return read_numbers<std::int64_t, std::int16_t>(n, key);
      case GgufType::kI32: return read_numbers<std::int64_t, std::int32_t>(n, key);
      case GgufType::kI64: return read_numbers<std::int64_t, std::int64_t>(n, key);
      case GgufType::kF32: return read_numbers<double, float>(n, key);
      case GgufType::kF64: return read_numbers<double, double>(n, key);
      case GgufType::kBool: return read_bools(n, key);
      case GgufType::kString: return read_strings(n, key);
      case GgufType::kArray: return read_inner_arrays(n, key, depth);
    }
    WEIR_CHECK(false, "read_type lets no other type pass");
  };
  WEIR_ASSIGN(array.values, values());
  return array;
}

template <class Wide, class Narrow>
Result<GgufArray> GgufParser::read_numbers(std::size_t count, std::string_view key) {
  std::vector<Wide> values(count);
  for (Wide& value : values) {
    Narrow narrow{};
    if (!cursor_.read(narrow)) return truncated(key);
    value = static_cast<Wide>(narrow);
  }
  return GgufArray(std::move(values));
}

Result<bool> GgufParser::read_bool(std::string_view key) {
  std::uint8_t byte = 0;
  if (!cursor_.read(byte)) return truncated(key);
  if (byte > 1) return fail(ErrorCode::kCorrupt, "{}: {} has the boolean {}; 0 and 1 are allowed", what_, key, byte);
  return byte != 0;
}

Result<GgufArray> GgufParser::read_bools(std::size_t count, std::string_view key) {
  std::vector<bool> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    WEIR_ASSIGN(values[i], read_bool(key));
  }
  return GgufArray(std::move(values));
}

Result<GgufArray> GgufParser::read_strings(std::size_t count, std::string_view key) {
  std::vector<std::string> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t length = 0;
    std::string_view text;
    if (!cursor_.read(length)) return truncated(key);
    if (!cursor_.take(length, text))
      return fail(ErrorCode::kCorrupt, "{}: element {} of {} has {} bytes where {} are left", what_, i, key, length, cursor_.remaining());
    values.emplace_back(text);
  }
  return GgufArray(std::move(values));
}

Result<GgufArray> GgufParser::read_inner_arrays(std::size_t count, std::string_view key, int depth) {
  GgufNestedArray values;
  for (std::size_t i = 0; i < count; ++i) {
    WEIR_ASSIGN(GgufInnerArray inner, read_array(key, depth + 1));
    values.items.push_back(std::move(inner));
  }
  return GgufArray(std::move(values));
}

Status GgufParser::read_alignment() {
  WEIR_ASSIGN(const std::int64_t alignment, file_.get_int_or("general.alignment", 32));
  file_.alignment_ = static_cast<std::uint64_t>(alignment);
  if (alignment < static_cast<std::int64_t>(kMinAlignment) || file_.alignment_ > kMaxAlignment || !std::has_single_bit(file_.alignment_))
    return fail(ErrorCode::kCorrupt, "{}: general.alignment is {}; a power of two from {} to {} is allowed", what_, alignment,
                kMinAlignment, kMaxAlignment);
  return {};
}

Status GgufParser::read_tensor_entries() {
  pending_.reserve(static_cast<std::size_t>(tensor_count_));
  for (std::uint64_t i = 0; i < tensor_count_; ++i) {
    WEIR_ASSIGN(PendingTensor tensor, read_tensor_entry(i));
    pending_.push_back(std::move(tensor));
  }
  return {};
}

Result<GgufParser::PendingTensor> GgufParser::read_tensor_entry(std::uint64_t index) {
  PendingTensor tensor;
  WEIR_ASSIGN(tensor.name, read_string(fmt::format("the name of tensor {} of {}", index + 1, tensor_count_)));
  if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes)
    return fail(ErrorCode::kCorrupt, "{}: the name of tensor {} has {} bytes", what_, index + 1, tensor.name.size());
  const std::string shown = "tensor " + in_quotes(tensor.name);
  WEIR_ASSIGN(tensor.shape, read_shape(shown));
  std::uint32_t type = 0;
  if (!cursor_.read(type) || !cursor_.read(tensor.offset)) return truncated(shown);
  const std::optional<DType> known = dtype_from_gguf(type);
  if (!known && !ggml_type_label(type).empty())
    return fail(ErrorCode::kUnsupported, "{}: {} has the type {} (id {}), which is not supported", what_, shown, ggml_type_label(type),
                type);
  if (!known) return fail(ErrorCode::kUnsupported, "{}: {} has the unknown type id {}", what_, shown, type);
  tensor.type = *known;
  auto size = tensor_bytes(tensor.type, tensor.shape);
  if (!size) return std::unexpected(std::move(size).error().with_context(fmt::format("{}: {}", what_, shown)));
  tensor.size = *size;
  return tensor;
}

// The file lists the innermost dimension first; shapes here begin with the outermost.
Result<std::vector<std::int64_t>> GgufParser::read_shape(std::string_view tensor) {
  std::uint32_t rank = 0;
  if (!cursor_.read(rank)) return truncated(tensor);
  if (rank < 1 || rank > kMaxRank)
    return fail(ErrorCode::kCorrupt, "{}: {} has {} dimensions; 1 to {} are allowed", what_, tensor, rank, kMaxRank);
  std::vector<std::int64_t> shape(rank);
  for (auto d = shape.rbegin(); d != shape.rend(); ++d) {
    std::uint64_t dimension = 0;
    if (!cursor_.read(dimension)) return truncated(tensor);
    if (dimension == 0 || dimension > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return fail(ErrorCode::kCorrupt, "{}: {} has a dimension of {}", what_, tensor, dimension);
    *d = static_cast<std::int64_t>(dimension);
  }
  return shape;
}

// The data section begins at the next aligned byte; offsets count from there.
Status GgufParser::place_tensors() {
  const std::uint64_t alignment = file_.alignment_;
  const std::uint64_t begin = (cursor_.position() + alignment - 1) / alignment * alignment;
  const std::uint64_t available = begin < bytes_.size() ? bytes_.size() - begin : 0;
  std::vector<Region> regions;
  regions.reserve(pending_.size());
  for (const PendingTensor& tensor : pending_) {
    const std::string shown = in_quotes(tensor.name);
    if (tensor.offset % alignment != 0)
      return fail(ErrorCode::kCorrupt, "{}: tensor {} is at offset {}, which is not aligned to {}", what_, shown, tensor.offset, alignment);
    if (tensor.offset > available || tensor.size > available - tensor.offset)
      return fail(ErrorCode::kCorrupt, "{}: tensor {} (offset {}, {} bytes) reaches beyond the {} bytes of data; is the download complete?",
                  what_, shown, tensor.offset, tensor.size, available);
    regions.push_back({tensor.offset, tensor.offset + tensor.size, regions.size()});
  }
  if (const Overlap overlap = find_overlap(regions); overlap.found)
    return fail(ErrorCode::kCorrupt, "{}: tensors {} and {} overlap", what_, in_quotes(pending_[overlap.first].name),
                in_quotes(pending_[overlap.second].name));
  for (PendingTensor& tensor : pending_) {
    const auto bytes = bytes_.subspan(static_cast<std::size_t>(begin + tensor.offset), static_cast<std::size_t>(tensor.size));
    auto added = file_.index_.add({std::move(tensor.name), {tensor.type, std::move(tensor.shape), bytes}, 0});
    if (!added) return std::unexpected(std::move(added).error().with_context(what_));
  }
  return {};
}

}  // namespace weir::formats
