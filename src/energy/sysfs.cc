// SPDX-License-Identifier: Apache-2.0
#include "energy/sysfs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace weir::energy {

Result<std::string> read_line(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    return fail(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "{}: {}", file.string(), std::strerror(error));
  }
  char bytes[256];
  const ssize_t got = ::read(fd, bytes, sizeof bytes);
  const int error = errno;
  ::close(fd);
  if (got < 0) return fail(ErrorCode::kIo, "{}: {}", file.string(), std::strerror(error));
  std::string text(bytes, static_cast<std::size_t>(got));
  return text.substr(0, text.find('\n'));
}

Result<double> read_number(const std::filesystem::path& file) {
  WEIR_ASSIGN(const std::string text, read_line(file));
  unsigned long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return fail(ErrorCode::kCorrupt, "{}: no number", file.string());
  return static_cast<double>(value);
}

}  // namespace weir::energy
