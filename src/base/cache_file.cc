// SPDX-License-Identifier: Apache-2.0
#include "base/cache_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "base/huge_memory.h"
#include "base/sha256.h"

namespace weir {
namespace {

constexpr std::string_view kMagic = "weir cache file 4\n";
constexpr std::string_view kSuffix = ".cache";
// Magic, sizes and key, then a hole: data at a border of large pages, written in pieces of their size, is kept by file systems in large
// folios, which the kernel maps with one entry each.
constexpr std::size_t kHeader = kHugePage;
constexpr std::size_t kMostKey = 60 << 10;
constexpr std::size_t kPiece = kHugePage;  // what one thread reads, writes and sums at a time: stays in its caches

std::filesystem::path path_of(const CacheFile::Options& options, std::string_view key) {
  return options.folder / (sha256_of(std::string(kMagic) + std::string(key)) + std::string(kSuffix));
}

// Eight streams of multiply and rotate over words of 64 bits: faster than memory, and no change of one word goes unseen.
std::uint64_t checksum(std::span<const std::byte> data, std::uint64_t seed) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  const auto mix = [](std::uint64_t sum, std::uint64_t word) { return std::rotl((sum ^ word) * kFactor, 31); };
  std::array<std::uint64_t, 8> sums;
  for (std::size_t i = 0; i < 8; ++i) sums[i] = seed * 8 + i;
  std::size_t at = 0;
  for (; at + sizeof sums <= data.size(); at += sizeof sums) {
    std::array<std::uint64_t, 8> words;
    std::memcpy(words.data(), data.data() + at, sizeof words);
    for (std::size_t i = 0; i < 8; ++i) sums[i] = mix(sums[i], words[i]);
  }
  for (; at < data.size(); ++at) sums[0] = mix(sums[0], static_cast<std::uint64_t>(data[at]));
  std::uint64_t all = data.size();
  for (const std::uint64_t sum : sums) all = mix(all, sum);
  return all;
}

// Calls handle(offset, size) for each piece on the pool's threads and gives the checksum of all: of the pieces' own, which it returns.
template <class Handle>
std::uint64_t checksum_of_pieces(std::uint64_t bytes, ThreadPool& pool, Handle handle) {
  std::vector<std::uint64_t> sums((bytes + kPiece - 1) / kPiece);
  pool.parallel_for(static_cast<std::int64_t>(sums.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      sums[i] = checksum(handle(i * kPiece, std::min<std::uint64_t>(kPiece, bytes - i * kPiece)), i);
  });
  return checksum(std::as_bytes(std::span(sums)), bytes);
}

std::string header_of(std::string_view key, std::uint64_t bytes, std::uint64_t sum) {
  std::string header(kMagic);
  header += fmt::format("{} {} {:016x}\n", bytes, key.size(), sum);
  header += key;
  return header;
}

// A mapping that ends with its last holder.
std::shared_ptr<std::byte> map_to_write(int fd, std::size_t size) {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
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
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  return fail(code == ENOENT ? ErrorCode::kNotFound
              : full         ? ErrorCode::kExhausted
                             : ErrorCode::kIo,
              "cannot {} {}: {}", action, path.string(), std::strerror(code));
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

Status read_fully(const std::filesystem::path& path, int fd, std::span<std::byte> out, std::uint64_t offset) {
  for (std::size_t at = 0; at < out.size();) {
    const ssize_t got = ::pread(fd, out.data() + at, out.size() - at, static_cast<off_t>(offset + at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error("read", path, errno);
    if (got == 0) return fail(ErrorCode::kCorrupt, "{} ends early", path.string());
    at += static_cast<std::size_t>(got);
  }
  return {};
}

Status write_fully(const std::filesystem::path& path, int fd, std::span<const std::byte> data, std::uint64_t offset) {
  for (std::size_t at = 0; at < data.size();) {
    const ssize_t put = ::pwrite(fd, data.data() + at, data.size() - at, static_cast<off_t>(offset + at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return os_error("write", path, put < 0 ? errno : ENOSPC);
    at += static_cast<std::size_t>(put);
  }
  return {};
}

// The first of the errors that several threads met.
class FirstError {
 public:
  void see(Status status) {
    if (status) return;
    const std::lock_guard lock(mutex_);
    if (status_) status_ = std::move(status);
  }
  Status take() { return std::move(status_); }

 private:
  std::mutex mutex_;
  Status status_;
};

// An opened file whose header is that of the key, and the header's text.
struct Found {
  std::filesystem::path path;
  Descriptor file;
  std::string header;
};

Status find(const CacheFile::Options& options, std::string_view key, std::uint64_t bytes, Found& found) {
  found.path = path_of(options, key);
  found.file.fd = ::open(found.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat info{};
  if (found.file.fd < 0 || ::fstat(found.file.fd, &info) != 0) return os_error("open", found.path, errno);
  const auto corrupt = [&] { return fail(ErrorCode::kCorrupt, "{} is damaged", found.path.string()); };
  if (info.st_uid != ::geteuid() || static_cast<std::uint64_t>(info.st_size) != kHeader + bytes) return corrupt();
  found.header.resize(header_of(key, bytes, 0).size());
  WEIR_TRY(read_fully(found.path, found.file.fd, std::as_writable_bytes(std::span(found.header)), 0));
  return {};
}

// Compares what the header says with what its data sums up to, and marks the file as used.
Status accept(const Found& found, std::string_view key, std::uint64_t bytes, std::uint64_t sum) {
  if (found.header != header_of(key, bytes, sum)) return fail(ErrorCode::kCorrupt, "{} is damaged", found.path.string());
  ::utimensat(AT_FDCWD, found.path.c_str(), nullptr, 0);
  return {};
}

// Keeps what `write` writes to a new file of this size: it returns the checksum of the data.
Status keep(const CacheFile::Options& options, std::string_view key, std::uint64_t bytes,
            const std::function<Result<std::uint64_t>(const std::string& path, int fd)>& write) {
  if (key.size() > kMostKey) return fail(ErrorCode::kInvalidArgument, "a cache key of {} bytes is too long", key.size());
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
  const auto attempt = [&]() -> Status {
    WEIR_ASSIGN(const std::uint64_t sum, write(temporary, file.fd));
    const std::string header = header_of(key, bytes, sum);
    WEIR_TRY(write_fully(temporary, file.fd, std::as_bytes(std::span(header)), 0));
    // What the name stands for is on the disk before the name is: after a crash of the system nobody finds a file of holes. (The
    // checksum would, but only after reading all of it.)
    if (::fdatasync(file.fd) != 0) return os_error("sync", temporary, errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return os_error("rename", temporary, errno);
    return {};
  };
  Status status = attempt();
  if (!status) ::unlink(temporary.c_str());
  return status;
}

}  // namespace

Result<CacheFile> CacheFile::open(const Options& options, std::string_view key, std::uint64_t bytes, ThreadPool& pool) {
  Found found;
  WEIR_TRY(find(options, key, bytes, found));
  const AlignedMap memory = map_aligned(found.file.fd, kHeader, bytes);
  if (!memory.owner) return os_error("map", found.path, errno);
  CacheFile cache;
  cache.data_ = memory.bytes;
  cache.owner_ = memory.owner;
  const auto sum = checksum_of_pieces(bytes, pool, [&](std::size_t at, std::size_t size) { return cache.data_.subspan(at, size); });
  WEIR_TRY(accept(found, key, bytes, sum));
  return cache;
}

Status CacheFile::copy_into(const Options& options, std::string_view key, std::span<std::byte> out, ThreadPool& pool) {
  Found found;
  WEIR_TRY(find(options, key, out.size(), found));
  FirstError error;
  const auto sum = checksum_of_pieces(out.size(), pool, [&](std::size_t at, std::size_t size) {
    error.see(read_fully(found.path, found.file.fd, out.subspan(at, size), kHeader + at));
    return out.subspan(at, size);
  });
  WEIR_TRY(error.take());
  return accept(found, key, out.size(), sum);
}

Result<CacheFile> CacheFile::create(const Options& options, std::string_view key, std::uint64_t bytes, const Fill& fill, ThreadPool& pool) {
  WEIR_TRY(keep(options, key, bytes, [&](const std::string& path, int fd) -> Result<std::uint64_t> {
    // Reserved beforehand: a full disk is an error here, where a store to a mapping would be a signal.
    if (const int code = ::posix_fallocate(fd, 0, static_cast<off_t>(kHeader + bytes)); code != 0) return os_error("reserve", path, code);
    const auto memory = map_to_write(fd, kHeader + bytes);
    if (!memory) return os_error("map", path, errno);
    const std::span<std::byte> data(memory.get() + kHeader, bytes);
    WEIR_TRY(fill(data));
    return checksum_of_pieces(bytes, pool, [&](std::size_t at, std::size_t size) { return data.subspan(at, size); });
  }));
  auto made = open(options, key, bytes, pool);
  if (!made) return std::unexpected(std::move(made).error().with_context("written but not readable"));
  return made;
}

Status CacheFile::store(const Options& options, std::string_view key, std::span<const std::byte> data, ThreadPool& pool) {
  return keep(options, key, data.size(), [&](const std::string& path, int fd) -> Result<std::uint64_t> {
    FirstError error;
    const auto sum = checksum_of_pieces(data.size(), pool, [&](std::size_t at, std::size_t size) {
      error.see(write_fully(path, fd, data.subspan(at, size), kHeader + at));
      return data.subspan(at, size);
    });
    WEIR_TRY(error.take());
    return sum;
  });
}

}  // namespace weir
