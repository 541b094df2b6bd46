// SPDX-License-Identifier: Apache-2.0
#include "base/cache_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/file_io.h"
#include "base/sha256.h"

namespace weir {
namespace {

constexpr std::string_view kMagic = "weir cache file 2\n";
constexpr std::string_view kSuffix = ".cache";
constexpr std::size_t kHeader = 1 << 16;  // magic, sizes and key; the data after it lies at a page border

std::filesystem::path path_of(const CacheFile::Options& options, std::string_view key) {
  return options.folder / (sha256_of(key) + std::string(kSuffix));
}

// Eight streams of multiply and xor over words of 64 bits: as fast as memory, and no single flip goes unseen.
std::uint64_t checksum(std::span<const std::byte> data) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  std::array<std::uint64_t, 8> sums{1, 2, 3, 4, 5, 6, 7, 8};
  std::size_t at = 0;
  for (; at + sizeof sums <= data.size(); at += sizeof sums) {
    std::array<std::uint64_t, 8> words;
    std::memcpy(words.data(), data.data() + at, sizeof words);
    for (std::size_t i = 0; i < 8; ++i) sums[i] = (sums[i] ^ words[i]) * kFactor;
  }
  for (; at < data.size(); ++at) sums[0] = (sums[0] ^ static_cast<std::uint64_t>(data[at])) * kFactor;
  std::uint64_t all = data.size();
  for (const std::uint64_t sum : sums) all = ((all ^ sum) * kFactor) ^ (all >> 29);
  return all;
}

std::string header_of(std::string_view key, std::span<const std::byte> data) {
  std::string header(kMagic);
  header += fmt::format("{} {} {:016x}\n", data.size(), key.size(), checksum(data));
  header += key;
  return header;
}

// A mapping that ends with its last holder.
std::shared_ptr<std::byte> map(int fd, std::size_t size, int protection) {
  void* data = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(data), [size](std::byte* p) { ::munmap(p, size); }};
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::unexpected<Error> os_error(const char* action, const std::filesystem::path& path, int code) {
  return fail(code == ENOSPC || code == EDQUOT || code == EFBIG ? ErrorCode::kExhausted : ErrorCode::kIo, "cannot {} {}: {}", action,
              path.string(), std::strerror(code));
}

// A temporary file that nobody has written to for an hour.
bool is_stale(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  const auto written = entry.last_write_time(error);
  return !error && std::filesystem::file_time_type::clock::now() - written > std::chrono::hours(1);
}

// Removes the least recently used files until `needed` more bytes are within the limit.
void make_room(const CacheFile::Options& options, std::uint64_t needed) {
  struct Entry {
    std::filesystem::path path;
    std::filesystem::file_time_type used;
    std::uint64_t bytes;
  };
  std::vector<Entry> entries;
  std::uint64_t total = needed;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder, error)) {
    if (!entry.is_regular_file(error)) continue;
    if (entry.path().stem().extension() == kSuffix && is_stale(entry)) {  // left by a process that was killed
      std::filesystem::remove(entry.path(), error);
      continue;
    }
    if (entry.path().extension() != kSuffix) continue;
    entries.push_back({entry.path(), entry.last_write_time(error), entry.file_size(error)});
    total += entries.back().bytes;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= options.limit_bytes) return;
    if (std::filesystem::remove(entry.path, error)) total -= entry.bytes;
  }
}

// The whole file under its temporary name; the caller renames it.
Status write_whole(const std::filesystem::path& path, int fd, std::string_view key, std::uint64_t bytes,
                   const std::function<void(std::span<std::byte>)>& fill) {
  const std::size_t size = kHeader + bytes;
  // Reserved beforehand: a full disk is an error here, where a store to a mapping would be a signal.
  if (const int code = ::posix_fallocate(fd, 0, static_cast<off_t>(size)); code != 0) return os_error("reserve", path, code);
  const auto memory = map(fd, size, PROT_READ | PROT_WRITE);
  if (!memory) return os_error("map", path, errno);
  const std::span<std::byte> data(memory.get() + kHeader, bytes);
  fill(data);
  const std::string header = header_of(key, data);
  std::memcpy(memory.get(), header.data(), header.size());
  if (::msync(memory.get(), size, MS_SYNC) != 0 || ::fsync(fd) != 0) return os_error("sync", path, errno);
  return {};
}

}  // namespace

std::optional<CacheFile> CacheFile::open(const Options& options, std::string_view key, std::uint64_t bytes) {
  const auto path = path_of(options, key);
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  struct stat info{};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0 || info.st_uid != ::geteuid()) return std::nullopt;
  if (static_cast<std::uint64_t>(info.st_size) != kHeader + bytes) return std::nullopt;
  const auto memory = map(file.fd, kHeader + bytes, PROT_READ);
  if (!memory) return std::nullopt;
  const std::string header = header_of(key, {memory.get() + kHeader, bytes});
  if (header.size() > kHeader || std::memcmp(memory.get(), header.data(), header.size()) != 0) return std::nullopt;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
  CacheFile found;
  found.data_ = {memory.get() + kHeader, bytes};
  found.owner_ = memory;
  return found;
}

Result<CacheFile> CacheFile::create(const Options& options, std::string_view key, std::uint64_t bytes,
                                    const std::function<void(std::span<std::byte>)>& fill) {
  if (key.size() + 256 > kHeader) return fail(ErrorCode::kInvalidArgument, "a cache key of {} bytes is too long", key.size());
  if (kHeader + bytes > options.limit_bytes)
    return fail(ErrorCode::kExhausted, "{} bytes do not fit the cache's limit of {}", bytes, options.limit_bytes);
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return fail(ErrorCode::kIo, "cannot create {}: {}", options.folder.string(), error.message());
  make_room(options, kHeader + bytes);

  const auto path = path_of(options, key);
  std::string temporary = path.string() + ".XXXXXX";
  const Descriptor file{::mkostemp(temporary.data(), O_CLOEXEC)};
  if (file.fd < 0) return os_error("create", temporary, errno);
  auto status = write_whole(temporary, file.fd, key, bytes, fill);
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0) status = os_error("rename", temporary, errno);
  if (!status) {
    ::unlink(temporary.c_str());
    return std::unexpected(std::move(status).error());
  }
  static_cast<void>(sync_folder(options.folder));  // losing the name in a crash costs only the work
  if (auto made = open(options, key, bytes)) return std::move(*made);
  return fail(ErrorCode::kIo, "{} was written but cannot be read", path.string());
}

}  // namespace weir
