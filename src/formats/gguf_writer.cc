// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_writer.h"

#include <algorithm>
#include <bit>

#include "base/file_io.h"
#include "formats/gguf_encoder.h"
#include "formats/gguf_split.h"
#include "formats/tensor_layout.h"

namespace weir::formats {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kMaxRank = 4;
constexpr std::uint64_t kMaxAlignment = 1u << 20;
constexpr const char* kAlignmentKey = "general.alignment";

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// 0 for what is no integer. The specification has alignments as u32; files with other integers are read, so they are written.
std::uint64_t unsigned_value(const GgufValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<std::uint64_t>(*number);
  const auto* number = std::get_if<std::uint64_t>(&value);
  return number ? *number : 0;
}

Status write_zeros(const ByteSink& out, std::uint64_t count) {
  const std::vector<std::byte> zeros(static_cast<std::size_t>(count));
  return out(zeros);
}

}  // namespace

Status GgufWriter::add(GgufEntry entry) {
  if (entry.key.empty()) return fail(ErrorCode::kInvalidArgument, "a metadata key is empty");
  std::string scratch;
  WEIR_TRY(append_entry(scratch, entry));  // finds values that do not fit
  if (entry.key == kAlignmentKey) {
    const std::uint64_t value = unsigned_value(entry.value);
    if (!std::has_single_bit(value) || value < 8 || value > kMaxAlignment)
      return fail(ErrorCode::kInvalidArgument, "general.alignment should be a power of two from 8 to {}", kMaxAlignment);
  }
  if (!keys_.insert(entry.key).second) return fail(ErrorCode::kInvalidArgument, "the key {} is added twice", in_quotes(entry.key));
  if (entry.key == kAlignmentKey) alignment_ = unsigned_value(entry.value);
  metadata_.push_back(std::move(entry));
  return {};
}

Status GgufWriter::add(GgufTensorSource tensor) {
  const std::string shown = "tensor " + in_quotes(tensor.name);
  if (tensor.name.empty()) return fail(ErrorCode::kInvalidArgument, "a tensor's name is empty");
  if (dtype_info(tensor.type).gguf_id < 0)
    return fail(ErrorCode::kInvalidArgument, "{}: GGUF has no type {}", shown, dtype_name(tensor.type));
  if (tensor.shape.empty() || tensor.shape.size() > kMaxRank || std::ranges::any_of(tensor.shape, [](std::int64_t d) { return d < 1; }))
    return fail(ErrorCode::kInvalidArgument, "{}: GGUF cannot hold the shape {}", shown, shape_string(tensor.shape));
  const auto bytes = tensor_bytes(tensor.type, tensor.shape);
  if (!bytes) return fail(ErrorCode::kInvalidArgument, "{}: {}", shown, bytes.error().message);
  if (!names_.insert(tensor.name).second) return fail(ErrorCode::kInvalidArgument, "{} is added twice", shown);
  tensors_.push_back({std::move(tensor), *bytes});
  return {};
}

Status GgufWriter::add(const NamedTensor& tensor) {
  const auto bytes = tensor.view.bytes;
  return add(GgufTensorSource{tensor.name, tensor.view.type, tensor.view.shape, [bytes](const ByteSink& out) { return out(bytes); }});
}

Result<std::string> GgufWriter::header_of(std::span<const GgufEntry> metadata, std::span<const Tensor> tensors) const {
  std::string out = "GGUF";
  append_raw(out, kVersion);
  append_raw(out, static_cast<std::uint64_t>(tensors.size()));
  append_raw(out, static_cast<std::uint64_t>(metadata.size()));
  for (const GgufEntry& entry : metadata) WEIR_TRY(append_entry(out, entry));
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const GgufTensorSource& source = tensor.source;
    append_string(out, source.name);
    append_raw(out, static_cast<std::uint32_t>(source.shape.size()));
    for (auto d = source.shape.rbegin(); d != source.shape.rend(); ++d) append_raw(out, static_cast<std::uint64_t>(*d));
    append_raw(out, static_cast<std::uint32_t>(dtype_info(source.type).gguf_id));
    append_raw(out, offset);
    offset = round_up(offset + tensor.bytes, alignment_);
  }
  out.resize(round_up(out.size(), alignment_));
  return out;
}

Status GgufWriter::write_part(std::span<const GgufEntry> metadata, std::span<const Tensor> tensors, const ByteSink& out) const {
  WEIR_ASSIGN(const std::string header, header_of(metadata, tensors));
  WEIR_TRY(out(std::as_bytes(std::span(header))));
  for (const Tensor& tensor : tensors) {
    std::uint64_t written = 0;
    const auto counted = [&](std::span<const std::byte> bytes) -> Status {
      written += bytes.size();
      if (written > tensor.bytes) return fail(ErrorCode::kInvalidArgument, "more than its {} bytes were written", tensor.bytes);
      return out(bytes);
    };
    Status status = tensor.source.write_to(counted);
    if (status && written != tensor.bytes)
      status = fail(ErrorCode::kInvalidArgument, "{} of its {} bytes were written", written, tensor.bytes);
    if (!status) return std::unexpected(std::move(status).error().with_context("tensor " + in_quotes(tensor.source.name)));
    WEIR_TRY(write_zeros(out, round_up(written, alignment_) - written));
  }
  return {};
}

Status GgufWriter::write(const std::filesystem::path& path) const {
  WEIR_ASSIGN(AtomicFile file, AtomicFile::create(path));
  WEIR_TRY(write_part(metadata_, tensors_, [&](std::span<const std::byte> bytes) { return file.write(bytes); }));
  return file.commit();
}

Result<std::string> GgufWriter::to_bytes() const {
  std::string text;
  WEIR_TRY(write_part(metadata_, tensors_, [&](std::span<const std::byte> bytes) -> Status {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }));
  return text;
}

Result<std::vector<std::filesystem::path>> GgufWriter::write_split(const std::filesystem::path& prefix,
                                                                   std::uint64_t max_part_bytes) const {
  for (const char* key : {"split.no", "split.count", "split.tensors.count"})
    if (keys_.contains(key)) return fail(ErrorCode::kInvalidArgument, "the key '{}' is written by the split itself", key);
  std::vector<std::size_t> ends;  // of each part, in tensors
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (size > 0 && size + tensors_[i].bytes > max_part_bytes) {
      ends.push_back(i);
      size = 0;
    }
    size += tensors_[i].bytes;
  }
  ends.push_back(tensors_.size());
  if (ends.size() > 0xffff) return fail(ErrorCode::kInvalidArgument, "{} parts are too many; allow more bytes in each", ends.size());

  std::vector<std::filesystem::path> paths;
  for (std::size_t part = 0, begin = 0; part < ends.size(); begin = ends[part++]) {
    std::vector<GgufEntry> metadata;
    if (part == 0) metadata = metadata_;
    metadata.push_back(gguf_scalar("split.no", GgufType::kU16, std::uint64_t{part}));
    metadata.push_back(gguf_scalar("split.count", GgufType::kU16, std::uint64_t{ends.size()}));
    metadata.push_back(gguf_scalar("split.tensors.count", GgufType::kI32, static_cast<std::int64_t>(tensors_.size())));
    if (part > 0 && keys_.contains(kAlignmentKey)) metadata.push_back(gguf_scalar(kAlignmentKey, GgufType::kU32, alignment_));
    paths.push_back(split_path(prefix, static_cast<std::int64_t>(part), static_cast<std::int64_t>(ends.size())));
    WEIR_ASSIGN(AtomicFile file, AtomicFile::create(paths.back()));
    WEIR_TRY(write_part(metadata, std::span(tensors_).subspan(begin, ends[part] - begin),
                        [&](std::span<const std::byte> bytes) { return file.write(bytes); }));
    WEIR_TRY(file.commit());
  }
  return paths;
}

}  // namespace weir::formats
