// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/file_io.h"
#include "store/names.h"

namespace weir::store {
namespace {

namespace fs = std::filesystem;
constexpr auto kLockPoll = std::chrono::milliseconds(200);

std::unexpected<Error> os_error(const char* action, const fs::path& path, int code) {
  return fail(code == ENOSPC ? ErrorCode::kExhausted : ErrorCode::kIo, "cannot {} {}: {}", action, path.string(), std::strerror(code));
}

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t total = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) total += it->file_size(ignored);
  }
  return total;
}

}  // namespace

ModelLock::ModelLock(ModelLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
ModelLock::~ModelLock() {
  if (fd_ >= 0) ::close(fd_);  // which releases the flock
}

Result<Store> Store::standard() {
  if (const char* home = std::getenv("WEIR_HOME"); home && *home) return Store(fs::absolute(home));
  if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data == '/') return Store(fs::path(data) / "weir");
  if (const char* home = std::getenv("HOME"); home && *home == '/') return Store(fs::path(home) / ".local/share/weir");
  return fail(ErrorCode::kNotFound, "there is no home folder for the model store; set WEIR_HOME");
}

InstalledModel Store::inspect(const std::string& name) const {
  InstalledModel model{.name = name, .manifest = {}, .problem = {}};
  Result<Manifest> manifest = read_manifest(folder(name));
  if (!manifest) {
    model.problem = manifest.error().code == ErrorCode::kNotFound ? "not completely downloaded" : manifest.error().message;
    return model;
  }
  model.manifest = std::move(*manifest);
  if (model.manifest.name != name) model.problem = "its manifest belongs to another model";
  if (!model.manifest.complete) model.problem = "not completely downloaded";
  for (const ManifestFile& file : model.manifest.files) {
    std::error_code error;
    const std::uint64_t size = fs::file_size(folder(name) / file.name, error);
    if (error)
      model.problem = fmt::format("{} is missing", file.name);
    else if (size != file.size)
      model.problem = fmt::format("{} has {} bytes instead of {}", file.name, size, file.size);
  }
  return model;
}

std::vector<InstalledModel> Store::list() const {
  std::vector<InstalledModel> models;
  std::error_code error;
  for (fs::directory_iterator it(root_ / "models", error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (it->is_directory(ignored) && check_model_name(name)) models.push_back(inspect(name));
  }
  std::ranges::sort(models, {}, &InstalledModel::name);
  return models;
}

Result<InstalledModel> Store::find(std::string_view name) const {
  const std::string wanted = lower_case(name);
  const std::string_view source = name.substr(0, name.find_first_of("?#"));  // as manifests hold URLs
  for (InstalledModel& model : list())
    if (lower_case(model.name) == wanted || (model.problem.empty() && model.manifest.source == source)) return std::move(model);
  return fail(ErrorCode::kNotFound, "no model called '{}' is installed", name);
}

fs::path Store::path_of(const InstalledModel& model) const {
  const fs::path base = folder(model.name);
  return model.manifest.entry_point == "." ? base : base / model.manifest.entry_point;
}

Result<int> Store::open_lock_file(std::string_view name) const {
  WEIR_TRY(check_model_name(name));
  const fs::path locks = root_ / "models" / ".locks";
  std::error_code error;
  fs::create_directories(locks, error);
  if (error) return os_error("create the folder", locks, error.value());
  const fs::path path = locks / lower_case(name);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return os_error("open", path, errno);
  return fd;
}

Result<ModelLock> Store::lock(std::string_view name, const Watcher& watcher) const {
  WEIR_ASSIGN(const int fd, open_lock_file(name));
  ModelLock lock(fd);
  for (bool told = false; ::flock(fd, LOCK_EX | LOCK_NB) != 0; told = true) {
    if (errno != EWOULDBLOCK && errno != EINTR) return os_error("lock", root_, errno);
    if (!told) watcher.note(fmt::format("another process is working on '{}'; waiting for it", name));
    if (watcher.stop()) return fail(ErrorCode::kCancelled, "stopped while waiting for another process that works on '{}'", name);
    std::this_thread::sleep_for(kLockPoll);
  }
  return lock;
}

Result<std::uint64_t> Store::remove(std::string_view wanted) const {
  WEIR_ASSIGN(const InstalledModel model, find(wanted));
  WEIR_ASSIGN(const int fd, open_lock_file(model.name));
  const ModelLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::kIo, "'{}' is being downloaded by another process; stop that one first", model.name);
  const fs::path from = folder(model.name);
  const std::uint64_t bytes = bytes_below(from);
  // Renamed first: the name is gone at once, even if the removal itself is interrupted.
  const fs::path trash = root_ / "models" / fmt::format(".removed-{}-{}", model.name, ::getpid());
  std::error_code error;
  fs::rename(from, trash, error);
  if (error) return os_error("remove", from, error.value());
  fs::remove_all(trash, error);
  if (error) return os_error("remove", trash, error.value());
  return bytes;
}

}  // namespace weir::store
