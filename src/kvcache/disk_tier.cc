// SPDX-License-Identifier: Apache-2.0
// A file is a header that names its key and the checksum of the bytes after it. The list of files is kept in memory: asking
// whether something is there costs no system call.
#include "kvcache/disk_tier.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "base/file_io.h"
#include "base/sha256.h"

namespace weir::kvcache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kv";

std::string name_of(std::int32_t pool, const std::string& key) { return fmt::format("{}.{}{}", key, pool, kSuffix); }

std::string header_of(const std::string& name, std::span<const std::byte> bytes) {
  Sha256 sum;
  sum.update(bytes);
  return fmt::format("weir kv 1 {} {} {}\n", name, bytes.size(), sum.hex());
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// "<64 hex digits>.<pool>.kv", or the same with a temporary ending that a killed process left.
bool is_ours(std::string_view name) { return name.size() > 64 && is_sha256(name.substr(0, 64)) && name.find(kSuffix) != name.npos; }

}  // namespace

Result<std::unique_ptr<DiskTier>> DiskTier::open(DiskTierOptions options) {
  std::error_code error;
  const bool made = fs::create_directories(options.folder, error);
  if (made && !error) fs::permissions(options.folder, fs::perms::owner_all, error);  // it will hold what users wrote
  if (error) return fail(ErrorCode::kIo, "cannot create {}: {}", options.folder.string(), error.message());
  std::unique_ptr<DiskTier> tier(new DiskTier(std::move(options)));
  tier->read_folder();
  tier->writer_ = std::thread([t = tier.get()] { t->write_queued(); });
  return tier;
}

DiskTier::~DiskTier() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
}

std::string DiskTier::root_key(std::string_view salt) const {
  return sha256_of(fmt::format("{} {}", sha256_of(options_.identity), sha256_of(salt)));
}

std::string DiskTier::block_key(const std::string& parent, std::span<const TokenId> tokens, std::int32_t prefilled) {
  Sha256 sum;
  sum.update(bytes_of(parent));
  sum.update(std::as_bytes(std::span(&prefilled, 1)));
  sum.update(std::as_bytes(tokens));
  return sum.hex();
}

// What an earlier process left, in the order of its use.
void DiskTier::read_folder() {
  struct Entry {
    File file;
    fs::file_time_type used;
  };
  std::vector<Entry> entries;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& entry : fs::directory_iterator(options_.folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_ours(name) || !entry.is_regular_file(error)) continue;
    const auto used = entry.last_write_time(error);
    if (name.ends_with(kSuffix)) {
      entries.push_back({{name, entry.file_size(error)}, used});
    } else if (now - used > std::chrono::hours(1)) {
      fs::remove(entry.path(), error);
    }
  }
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::pair(e.used, e.file.name); });
  for (Entry& entry : entries) {
    stats_.bytes += entry.file.bytes;
    const auto at = files_.insert(files_.end(), std::move(entry.file));
    by_name_.emplace(at->name, at);
  }
  for (const File& file : make_room(0)) fs::remove(path(file.name), error);
}

// Takes files off the list until `bytes` more are within the limit; the caller removes them.
DiskTier::Files DiskTier::make_room(std::uint64_t bytes) {
  Files gone;
  while (!files_.empty() && stats_.bytes + bytes > options_.limit_bytes) {
    stats_.bytes -= files_.front().bytes;
    by_name_.erase(files_.front().name);
    gone.splice(gone.end(), files_, files_.begin());
  }
  return gone;
}

bool DiskTier::contains(std::int32_t pool, const std::string& key) const {
  const std::string name = name_of(pool, key);
  const std::lock_guard lock(mutex_);
  return by_name_.contains(name) || std::ranges::any_of(queue_, [&](const Save& s) { return s.name == name; });
}

std::optional<std::vector<std::byte>> DiskTier::load(std::int32_t pool, const std::string& key) {
  const std::string name = name_of(pool, key);
  {
    const std::lock_guard lock(mutex_);
    const auto queued = std::ranges::find(queue_, name, &Save::name);
    if (queued != queue_.end()) {
      ++stats_.loaded;
      return queued->bytes;
    }
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    files_.splice(files_.end(), files_, found->second);
  }
  constexpr std::uint64_t kMostHeader = 256;
  const auto text = read_file(path(name), bytes(pool) + kMostHeader);
  const std::size_t header = text ? text->find('\n') + 1 : 0;  // 0 as well when there is no line
  const auto data = bytes_of(text ? std::string_view(*text).substr(header) : "");
  if (header == 0 || data.size() != bytes(pool) || std::string_view(*text).substr(0, header) != header_of(name, data)) {
    forget(name);
    return std::nullopt;
  }
  std::error_code ignored;
  fs::last_write_time(path(name), fs::file_time_type::clock::now(), ignored);  // for the order after a restart
  const std::lock_guard lock(mutex_);
  ++stats_.loaded;
  return std::vector<std::byte>(data.begin(), data.end());
}

// A file that cannot be used.
void DiskTier::forget(const std::string& name) {
  std::error_code ignored;
  fs::remove(path(name), ignored);
  const std::lock_guard lock(mutex_);
  ++stats_.failed;
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return;
  stats_.bytes -= found->second->bytes;
  files_.erase(found->second);
  by_name_.erase(found);
}

void DiskTier::save(std::int32_t pool, const std::string& key, std::vector<std::byte> bytes) {
  WEIR_CHECK(bytes.size() == this->bytes(pool), "{} bytes for pool {} of {}", bytes.size(), pool, this->bytes(pool));
  {
    const std::lock_guard lock(mutex_);
    std::string name = name_of(pool, key);
    if (by_name_.contains(name) || std::ranges::find(queue_, name, &Save::name) != queue_.end()) return;
    if (queue_.size() >= options_.queued_saves) {
      ++stats_.dropped;
      return;
    }
    queue_.push_back({std::move(name), std::move(bytes)});
  }
  changed_.notify_all();
}

void DiskTier::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty(); });
}

void DiskTier::write_queued() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Save& save = queue_.front();  // stays in place: others only append
    lock.unlock();
    write(save);
    lock.lock();
    queue_.pop_front();
    changed_.notify_all();
  }
}

void DiskTier::write(const Save& save) {
  const std::string header = header_of(save.name, save.bytes);
  const std::uint64_t size = header.size() + save.bytes.size();
  Files gone;
  {
    const std::lock_guard lock(mutex_);
    if (size > options_.limit_bytes) {
      ++stats_.dropped;
      return;
    }
    gone = make_room(size);
  }
  std::error_code ignored;
  for (const File& file : gone) fs::remove(path(file.name), ignored);
  const auto written = [&]() -> Status {
    WEIR_ASSIGN(AtomicFile file, AtomicFile::create(path(save.name)));
    WEIR_TRY(file.write(header));
    WEIR_TRY(file.write(save.bytes));
    return file.commit();
  }();
  const std::lock_guard lock(mutex_);
  if (!written) {
    ++stats_.failed;
    return;
  }
  ++stats_.saved;
  stats_.bytes += size;
  by_name_.emplace(save.name, files_.insert(files_.end(), {save.name, size}));
}

DiskTierStats DiskTier::stats() const {
  const std::lock_guard lock(mutex_);
  DiskTierStats stats = stats_;
  stats.files = files_.size();
  return stats;
}

}  // namespace weir::kvcache
