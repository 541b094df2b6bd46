// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace weir {

namespace {

constexpr std::int64_t kGrain_s = 2;  // coarser than the times of any file system in use

struct OpenFile {
  int fd = -1;
  std::size_t size = 0;
  struct stat info{};
};

std::string identity_of(const std::filesystem::path& path, const struct stat& info) {
  std::error_code ignored;
  return fmt::format("{}\n{}:{} {} {}.{:09} {}.{:09}", std::filesystem::absolute(path, ignored).lexically_normal().string(), info.st_dev,
                     info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

Result<OpenFile> open_regular(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return fail(code, "cannot open {}: {}", path.string(), std::strerror(errno));
  }
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail(ErrorCode::kIo, "{} is not a regular file", path.string());
  }
  return OpenFile{fd, static_cast<std::size_t>(info.st_size), info};
}

// False when the file ends early or cannot be read.
bool read_fully(int fd, std::byte* to, std::size_t length, std::uint64_t offset) {
  for (std::size_t at = 0; at < length;) {
    const ssize_t got = ::pread(fd, to + at, length - at, static_cast<off_t>(offset + at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  WEIR_ASSIGN(const OpenFile file, open_regular(path));
  void* data = nullptr;
  if (file.size > 0) data = ::mmap(nullptr, file.size, PROT_READ, MAP_SHARED, file.fd, 0);
  ::close(file.fd);
  if (data == MAP_FAILED) return fail(ErrorCode::kIo, "cannot map {}: {}", path.string(), std::strerror(errno));
  return std::shared_ptr<const MappedFile>(new MappedFile(path, file.info, static_cast<const std::byte*>(data), file.size, false));
}

Result<std::shared_ptr<const MappedFile>> MappedFile::read_part(const std::filesystem::path& path, std::uint64_t offset,
                                                                std::size_t length) {
  WEIR_ASSIGN(const OpenFile file, open_regular(path));
  void* memory = nullptr;
  if (length > 0 && length <= file.size) memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    ::close(file.fd);
    return fail(ErrorCode::kExhausted, "no memory for {} bytes of {}", length, path.string());
  }
  auto* data = static_cast<std::byte*>(memory);
  std::shared_ptr<const MappedFile> part(new MappedFile(path, file.info, data, data ? length : 0, true));
  const bool complete = part->size_ == length && read_fully(file.fd, data, length, offset);
  ::close(file.fd);
  if (!complete) return fail(ErrorCode::kIo, "cannot read {} bytes at {} of {}", length, offset, path.string());
  return part;
}

MappedFile::MappedFile(std::filesystem::path path, const struct stat& info, const std::byte* data, std::size_t size, bool copy)
    : path_(std::move(path)),
      data_(data),
      size_(size),
      copy_(copy),
      identity_(identity_of(path_, info)),
      changed_s_(std::max(info.st_mtim.tv_sec, info.st_ctim.tv_sec)) {}

bool MappedFile::unchanged() const {
  struct stat info{};
  return ::stat(path_.c_str(), &info) == 0 && identity_of(path_, info) == identity_;
}

bool MappedFile::just_changed() const { return ::time(nullptr) - changed_s_ <= kGrain_s; }

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::prefetch(std::size_t offset, std::size_t length) const {
  if (copy_ || offset >= size_) return;
  const std::size_t begin = offset / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  ::madvise(const_cast<std::byte*>(data_) + begin, std::min(offset + length, size_) - begin, MADV_WILLNEED);
}

void MappedFile::release(std::size_t offset, std::size_t length) const {
  if (copy_) return;  // the kernel would forget the bytes
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = (offset + page - 1) / page * page;
  const std::size_t end = std::min(offset + length, size_) / page * page;
  if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace weir
