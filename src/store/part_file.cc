// SPDX-License-Identifier: Apache-2.0
#include "store/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/file_io.h"
#include "base/json.h"

namespace weir::store {
namespace {

std::unexpected<Error> os_error(const char* action, const std::filesystem::path& path) {
  const int code = errno;
  if (code == ENOSPC || code == EDQUOT || code == EFBIG)
    return fail(ErrorCode::kExhausted,
                "no room to {} {}: {}; free some, or set WEIR_HOME to another disk, then repeat the command to continue", action,
                path.string(), std::strerror(code));
  return fail(ErrorCode::kIo, "cannot {} {}: {}", action, path.string(), std::strerror(code));
}

Result<PartOrigin> origin_from_json(std::string_view text) {
  WEIR_ASSIGN(const json::Value value, json::parse(text, "part", {.max_bytes = 1 << 16, .max_depth = 4}));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "part"));
  PartOrigin origin;
  WEIR_ASSIGN(origin.url_sha256, json::get_string(*object, "url_sha256"));
  WEIR_ASSIGN(origin.etag, json::get_string_or(*object, "etag", ""));
  WEIR_ASSIGN(origin.server_sha256, json::get_string_or(*object, "server_sha256", ""));
  WEIR_ASSIGN(const std::int64_t total, json::get_int_or(*object, "total", -1));
  if (total >= 0) origin.total = static_cast<std::uint64_t>(total);
  WEIR_ASSIGN(const std::int64_t synced, json::get_int_or(*object, "synced", 0));
  origin.synced = static_cast<std::uint64_t>(std::max<std::int64_t>(0, synced));
  return origin;
}

}  // namespace

Result<PartFile> PartFile::open(const std::filesystem::path& target, const std::string& url_sha256) {
  const std::filesystem::path path = target.string() + ".part";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return os_error("create", path);
  PartFile part(target, fd);
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return fail(ErrorCode::kIo, "{} is not a plain file", path.string());
  part.size_ = static_cast<std::uint64_t>(info.st_size);
  WEIR_TRY(part.load_origin(url_sha256));
  return part;
}

PartFile::PartFile(PartFile&& other) noexcept
    : target_(std::move(other.target_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      hashed_(other.hashed_),
      digest_(std::move(other.digest_)),
      origin_(std::move(other.origin_)) {}

PartFile::~PartFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status PartFile::load_origin(const std::string& url_sha256) {
  const Result<std::string> text = read_file(origin_path(), 1 << 16);
  Result<PartOrigin> origin = text ? origin_from_json(*text) : std::unexpected(text.error());
  if (origin && origin->url_sha256 == url_sha256) {
    origin_ = std::move(*origin);
    return {};
  }
  origin_ = {};
  origin_.url_sha256 = url_sha256;
  return truncate(0);
}

Status PartFile::set_origin(PartOrigin origin) {
  origin_ = std::move(origin);
  json::Object object{{"url_sha256", origin_.url_sha256},
                      {"etag", origin_.etag},
                      {"server_sha256", origin_.server_sha256},
                      {"synced", static_cast<std::int64_t>(origin_.synced)}};
  if (origin_.total) object["total"] = static_cast<std::int64_t>(*origin_.total);
  return write_file_atomically(origin_path(), boost::json::serialize(object));
}

Status PartFile::append(std::span<const std::byte> bytes) {
  if (hashed_ == size_) {
    digest_.update(bytes);
    hashed_ += bytes.size();
  }
  std::uint64_t offset = size_;
  for (auto rest = bytes; !rest.empty();) {
    const ssize_t put = ::pwrite(fd_, rest.data(), rest.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      auto error = os_error("write", part_path());
      WEIR_TRY(truncate(offset));
      return error;
    }
    offset += static_cast<std::uint64_t>(put);
    rest = rest.subspan(static_cast<std::size_t>(put));
  }
  size_ = offset;
  return {};
}

Status PartFile::truncate(std::uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) return os_error("shorten", part_path());
  size_ = size;
  if (hashed_ != size) {
    digest_ = Sha256();
    hashed_ = 0;
  }
  return {};
}

Status PartFile::park() {
  if (::fsync(fd_) != 0) return os_error("sync", part_path());
  PartOrigin origin = origin_;
  origin.synced = size_;
  return set_origin(std::move(origin));
}

Status PartFile::hash_existing() {
  std::vector<std::byte> buffer(1 << 20);
  while (hashed_ < size_) {
    const ssize_t got = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(hashed_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error("read", part_path());
    if (got == 0) return fail(ErrorCode::kIo, "{} became shorter while it was read", part_path().string());
    digest_.update(std::span(buffer).first(static_cast<std::size_t>(got)));
    hashed_ += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<std::string> PartFile::sha256() {
  WEIR_TRY(hash_existing());
  std::string hex = digest_.hex();
  digest_ = Sha256();
  hashed_ = 0;  // asked again, the file is read again
  return hex;
}

Status PartFile::finish() {
  if (::fsync(fd_) != 0) return os_error("sync", part_path());
  if (::rename(part_path().c_str(), target_.c_str()) != 0) return os_error("rename to", target_);
  ::unlink(origin_path().c_str());
  return sync_folder(target_.parent_path());
}

void PartFile::discard() {
  ::unlink(part_path().c_str());
  ::unlink(origin_path().c_str());
}

}  // namespace weir::store
