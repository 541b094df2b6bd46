// SPDX-License-Identifier: Apache-2.0
#include "bench/probe_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace weir::bench {
namespace {

std::unexpected<Error> os_error(const char* what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return fail(full ? ErrorCode::kExhausted : ErrorCode::kIo, "cannot {} the file to measure the disk with: {}", what, std::strerror(error));
}

}  // namespace

Result<ProbeFile> ProbeFile::create(const std::filesystem::path& folder, bool direct) {
  std::string name = (folder / ".weir-disk-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return fail(ErrorCode::kIo, "cannot create a file in {}: {}", folder.string(), std::strerror(errno));
  ProbeFile file(fd);
  if (::unlink(name.c_str()) != 0) return fail(ErrorCode::kIo, "cannot remove {}: {}", name, std::strerror(errno));
  // Asked for afterwards: where open() refuses O_DIRECT it leaves the new file behind.
  if (direct) file.set_direct(true);
  return file;
}

ProbeFile::ProbeFile(ProbeFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), direct_(other.direct_) {}

ProbeFile::~ProbeFile() {
  if (fd_ >= 0) ::close(fd_);
}

bool ProbeFile::set_direct(bool on) {
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags < 0 || ::fcntl(fd_, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) != 0) return false;
  direct_ = on;
  return true;
}

template <class Call>
Status ProbeFile::transfer(const char* what, std::size_t bytes, Call call) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = call(done);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return fail(ErrorCode::kIo, "cannot {} the file to measure the disk with: it ended too soon", what);
    } else if (const int error = errno; error != EINTR && !(error == EINVAL && direct_ && set_direct(false))) {
      return os_error(what, error);
    }
  }
  return {};
}

Status ProbeFile::write(std::span<const std::byte> block, std::uint64_t offset) {
  return transfer("write", block.size(), [&](std::size_t done) {
    return ::pwrite(fd_, block.data() + done, block.size() - done, static_cast<off_t>(offset + done));
  });
}

Status ProbeFile::read(std::span<std::byte> block, std::uint64_t offset) {
  return transfer("read", block.size(), [&](std::size_t done) {
    return ::pread(fd_, block.data() + done, block.size() - done, static_cast<off_t>(offset + done));
  });
}

Status ProbeFile::sync() {
  while (::fdatasync(fd_) != 0)
    if (errno != EINTR) return os_error("sync", errno);
  return {};
}

void ProbeFile::forget(std::uint64_t offset, std::uint64_t bytes) {
  if (!direct_) ::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

void ProbeFile::expect_random() { ::posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM); }

}  // namespace weir::bench
