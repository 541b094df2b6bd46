// SPDX-License-Identifier: Apache-2.0
#include "store/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace weir::store {
namespace {

constexpr std::size_t kKeptOutput = 64 << 10;
constexpr int kTickMs = 100;
constexpr int kTicksBeforeKill = 20;

struct FileActions {
  posix_spawn_file_actions_t actions;
  FileActions() { ::posix_spawn_file_actions_init(&actions); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
};

Result<pid_t> spawn(const std::vector<std::string>& arguments, int output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  FileActions files;
  ::posix_spawn_file_actions_addopen(&files.actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files.actions, output, 1);
  ::posix_spawn_file_actions_adddup2(&files.actions, output, 2);
  pid_t pid = -1;
  const int code = ::posix_spawnp(&pid, argv[0], &files.actions, nullptr, argv.data(), environ);
  if (code != 0)
    return fail(code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot start {}: {}", arguments[0], std::strerror(code));
  return pid;
}

// Reads what is there: the count, 0 at the end of the stream, -1 when there is nothing now.
ssize_t drain(int fd, std::string& output) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got > 0) output.append(buffer.data(), static_cast<std::size_t>(got));
  if (output.size() > 2 * kKeptOutput) output.erase(0, output.size() - kKeptOutput);
  return got;
}

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

Result<ProcessResult> run_process(const std::vector<std::string>& arguments, const std::function<bool()>& tick) {
  std::array<int, 2> pipe_ends{-1, -1};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return fail(ErrorCode::kIo, "cannot create a pipe: {}", std::strerror(errno));
  Result<pid_t> pid = spawn(arguments, pipe_ends[1]);
  ::close(pipe_ends[1]);
  if (!pid) {
    ::close(pipe_ends[0]);
    return std::unexpected(std::move(pid).error());
  }
  ProcessResult result;
  bool cancelled = false;
  int ticks_after_cancel = 0, status = 0;
  bool open = true, ended = false;
  while (!ended) {
    pollfd waiting{open ? pipe_ends[0] : -1, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, kTickMs);
    if (ready > 0) open = drain(pipe_ends[0], result.output) != 0;
    if (!open || ready <= 0) ended = ::waitpid(*pid, &status, WNOHANG) == *pid;
    if (!cancelled && tick && !tick()) {
      cancelled = true;
      ::kill(*pid, SIGTERM);
    }
    if (!ended && cancelled && ready <= 0 && ++ticks_after_cancel == kTicksBeforeKill) ::kill(*pid, SIGKILL);
  }
  ::fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);  // a grandchild may still hold the other end
  while (open && drain(pipe_ends[0], result.output) > 0) {
  }
  ::close(pipe_ends[0]);
  if (cancelled) return fail(ErrorCode::kCancelled, "{} was stopped", arguments[0]);
  if (result.output.size() > kKeptOutput) result.output.erase(0, result.output.size() - kKeptOutput);
  result.exit_code = exit_code_of(status);
  return result;
}

}  // namespace weir::store
