// SPDX-License-Identifier: Apache-2.0
// Layout after PKWARE's APPNOTE.TXT, sections 4.3.7 (local header), 4.3.12 (central directory) and 4.3.16 (its end).
#include "store/zip_archive.h"

#include <zlib.h>

#include <algorithm>

#include "base/check.h"

namespace weir::store {
namespace {

constexpr std::uint32_t kEndSignature = 0x06054b50, kEntrySignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
constexpr std::size_t kMaxComment = 0xffff;
constexpr std::size_t kPiece = 1 << 18;

std::unexpected<Error> broken(const char* why) { return fail(ErrorCode::kCorrupt, "not a readable ZIP file: {}", why); }

std::uint32_t little_endian(std::span<const std::byte> bytes, std::size_t offset, int count) {
  WEIR_CHECK(offset + static_cast<std::size_t>(count) <= bytes.size());
  std::uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | static_cast<std::uint32_t>(bytes[offset + static_cast<std::size_t>(i)]);
  return value;
}
std::uint32_t u32(std::span<const std::byte> bytes, std::size_t offset) { return little_endian(bytes, offset, 4); }
std::uint16_t u16(std::span<const std::byte> bytes, std::size_t offset) {
  return static_cast<std::uint16_t>(little_endian(bytes, offset, 2));
}

// The end record stands last, before a comment of at most 64 KiB.
Result<std::size_t> find_end(std::span<const std::byte> bytes) {
  if (bytes.size() < kEndBytes) return broken("too short");
  const std::size_t last = bytes.size() - kEndBytes;
  const std::size_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (std::size_t at = last + 1; at-- > first;)
    if (u32(bytes, at) == kEndSignature && at + kEndBytes + u16(bytes, at + 20) == bytes.size()) return at;
  return broken("no end record");
}

// Ends an inflate stream however its function is left.
struct Inflater {
  z_stream stream{};
  bool ready = ::inflateInit2(&stream, -MAX_WBITS) == Z_OK;
  ~Inflater() {
    if (ready) ::inflateEnd(&stream);
  }
};

using CheckedSink = std::function<Status(std::span<const std::byte>)>;

Status inflate_all(std::span<const std::byte> packed, const CheckedSink& sink) {
  Inflater inflater;
  if (!inflater.ready) return fail(ErrorCode::kExhausted, "no memory to unpack a ZIP file");
  z_stream& stream = inflater.stream;
  std::vector<std::byte> out(kPiece);
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const std::size_t take = std::min(packed.size(), kPiece);
      if (take == 0) return broken("a member ends too early");
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
      stream.avail_in = static_cast<uInt>(take);
      packed = packed.subspan(take);
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    code = ::inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return broken("a member's data is damaged");
    WEIR_TRY(sink(std::span(out).first(out.size() - stream.avail_out)));
  }
  if (!packed.empty() || stream.avail_in != 0) return broken("a member is followed by stray data");
  return {};
}

}  // namespace

Result<ZipArchive> ZipArchive::open(const std::filesystem::path& path) {
  WEIR_ASSIGN(auto file, MappedFile::open(path));
  Result<ZipArchive> archive = parse(file->bytes());
  if (!archive) return std::unexpected(std::move(archive).error().with_context(path.string()));
  archive->file_ = std::move(file);
  return archive;
}

Result<ZipArchive> ZipArchive::parse(std::span<const std::byte> bytes) {
  WEIR_ASSIGN(const std::size_t end, find_end(bytes));
  const std::size_t count = u16(bytes, end + 10);
  const std::size_t directory_size = u32(bytes, end + 12), directory = u32(bytes, end + 16);
  if (u16(bytes, end + 4) != 0 || u16(bytes, end + 8) != count) return broken("it is split over several files");
  if (count == 0xffff || directory == 0xffffffff) return fail(ErrorCode::kUnsupported, "ZIP64 files are not supported");
  if (directory > end || directory_size > end - directory) return broken("its directory lies outside the file");

  ZipArchive archive;
  archive.bytes_ = bytes;
  std::span<const std::byte> rest = bytes.subspan(directory, directory_size);
  for (std::size_t i = 0; i < count; ++i) {
    if (rest.size() < kEntryBytes || u32(rest, 0) != kEntrySignature) return broken("its directory is damaged");
    const std::size_t name_size = u16(rest, 28), total = kEntryBytes + name_size + u16(rest, 30) + u16(rest, 32);
    if (total > rest.size()) return broken("its directory is damaged");
    ZipMember member;
    member.name.assign(reinterpret_cast<const char*>(rest.data()) + kEntryBytes, name_size);
    if ((u16(rest, 8) & 1) != 0) return fail(ErrorCode::kUnsupported, "encrypted ZIP files are not supported");
    member.method = u16(rest, 10);
    member.crc32 = u32(rest, 16);
    member.packed_size = u32(rest, 20);
    member.size = u32(rest, 24);
    member.header_offset = u32(rest, 42);
    if (archive.find(member.name)) return broken("two members have the same name");
    archive.members_.push_back(std::move(member));
    rest = rest.subspan(total);
  }
  return archive;
}

const ZipMember* ZipArchive::find(std::string_view name) const {
  const auto found = std::ranges::find(members_, name, &ZipMember::name);
  return found == members_.end() ? nullptr : &*found;
}

Result<std::span<const std::byte>> ZipArchive::packed_bytes(const ZipMember& member) const {
  if (member.header_offset > bytes_.size() || bytes_.size() - member.header_offset < kLocalBytes)
    return broken("a member lies outside the file");
  std::span<const std::byte> rest = bytes_.subspan(member.header_offset);
  if (u32(rest, 0) != kLocalSignature) return broken("a member's header is damaged");
  const std::size_t header = kLocalBytes + std::size_t{u16(rest, 26)} + u16(rest, 28);
  if (header > rest.size() || member.packed_size > rest.size() - header) return broken("a member lies outside the file");
  return rest.subspan(header, member.packed_size);
}

Status ZipArchive::extract(const ZipMember& member, const Sink& sink) const {
  WEIR_ASSIGN(const auto packed, packed_bytes(member));
  std::uint64_t written = 0;
  uLong crc = ::crc32(0, nullptr, 0);
  const CheckedSink checked = [&](std::span<const std::byte> piece) -> Status {
    written += piece.size();
    if (written > member.size) return broken("a member is larger than stated");
    crc = ::crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    return sink(piece);
  };
  if (member.method == Z_DEFLATED) {
    WEIR_TRY(inflate_all(packed, checked));
  } else if (member.method == 0) {
    for (std::size_t at = 0; at < packed.size(); at += kPiece) WEIR_TRY(checked(packed.subspan(at, std::min(kPiece, packed.size() - at))));
  } else {
    return fail(ErrorCode::kUnsupported, "'{}' is packed with method {}, which is not supported", member.name, member.method);
  }
  if (written != member.size) return broken("a member is smaller than stated");
  if (static_cast<std::uint32_t>(crc) != member.crc32) return broken("a member fails its check sum (CRC-32)");
  return {};
}

}  // namespace weir::store
