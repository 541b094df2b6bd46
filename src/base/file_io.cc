// SPDX-License-Identifier: Apache-2.0
#include "base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace weir {
namespace {

std::unexpected<Error> os_error(const char* action, const std::filesystem::path& path) {
  const int code = errno;
  const ErrorCode kind = code == ENOENT ? ErrorCode::kNotFound : code == ENOSPC || code == EDQUOT ? ErrorCode::kExhausted : ErrorCode::kIo;
  return fail(kind, "cannot {} {}: {}", action, path.string(), std::strerror(code));
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return os_error("open", path);
  std::string text;
  std::vector<char> buffer(1 << 16);
  ssize_t got = 0;
  while ((got = ::read(fd, buffer.data(), buffer.size())) > 0 || (got < 0 && errno == EINTR)) {
    if (got < 0) continue;
    if (text.size() + static_cast<std::size_t>(got) > limit) {
      ::close(fd);
      return fail(ErrorCode::kExhausted, "{} is larger than the {} bytes allowed here", path.string(), limit);
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  if (got < 0) {
    auto error = os_error("read", path);
    ::close(fd);
    return error;
  }
  ::close(fd);
  return text;
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  WEIR_ASSIGN(AtomicFile file, AtomicFile::create(path));
  WEIR_TRY(file.write(bytes));
  return file.commit();
}

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& target) {
  std::string pattern = target.string() + ".XXXXXX";
  const int fd = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (fd < 0) return os_error("create a temporary file for", target);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd, 0666 & ~mask);
  return AtomicFile(target, pattern, fd);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)), temporary_(std::move(other.temporary_)), fd_(other.fd_), written_(other.written_) {
  other.fd_ = -1;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return os_error("write", temporary_);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    written_ += static_cast<std::uint64_t>(put);
  }
  return {};
}

Status AtomicFile::commit() {
  if (::fsync(fd_) != 0) return os_error("sync", temporary_);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return os_error("rename to", target_);
  ::close(fd_);
  fd_ = -1;
  const auto folder = target_.parent_path();
  return sync_folder(folder.empty() ? "." : folder);
}

Status sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return os_error("open", folder);
  const int rc = ::fsync(fd);
  ::close(fd);
  if (rc != 0 && errno != EINVAL) return os_error("sync", folder);  // some file systems cannot sync folders
  return {};
}

}  // namespace weir
