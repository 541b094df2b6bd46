// SPDX-License-Identifier: Apache-2.0
#include "bench/cold_start.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/system_memory.h"
#include "engine/runner.h"
#include "sampling/sampler.h"

extern char** environ;

namespace weir::bench {
namespace {

constexpr std::size_t kLongestLine = 64 << 10;

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
  }
  ~Pipe() {
    close_write();
    if (ends_[0] >= 0) ::close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool ok() const { return ends_[0] >= 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }

 private:
  int ends_[2] = {-1, -1};
};

// 0 or an errno.
int spawn(const std::vector<std::string>& command, int standard_output, pid_t& child) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (const int error = ::posix_spawn_file_actions_init(&actions)) return error;
  int error = ::posix_spawn_file_actions_adddup2(&actions, standard_output, STDOUT_FILENO);
  if (error == 0) error = ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Up to the line break; empty when the other end closed before it.
std::string read_line(int file) {
  std::string line;
  char buffer[4096];
  while (line.size() < kLongestLine) {
    const ssize_t n = ::read(file, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return "";
    line.append(buffer, static_cast<std::size_t>(n));
    if (const std::size_t end = line.find('\n'); end != std::string::npos) return line.substr(0, end);
  }
  return "";
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Result<ColdRun> start_once(const std::vector<std::string>& command) {
  Pipe pipe;
  if (!pipe.ok()) return fail(ErrorCode::kIo, "cannot make a pipe: {}", std::strerror(errno));
  const TimePoint start = steady_clock().now();
  pid_t child = 0;
  if (const int error = spawn(command, pipe.write_end(), child))
    return fail(ErrorCode::kIo, "cannot start {}: {}", command[0], std::strerror(error));
  pipe.close_write();
  const std::string line = read_line(pipe.read_end());
  ColdRun run{.seconds = to_seconds(steady_clock().now() - start), .line = {}};
  const int status = wait_for(child);
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM)) return fail(ErrorCode::kCancelled, "interrupted");
  if (line.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(ErrorCode::kInternal, "a process that was started to time its first token ended without one");
  WEIR_ASSIGN(const json::Value value, json::parse(line, "the started process's line"));
  WEIR_ASSIGN(const json::Object* object, json::as_object(value, "the started process's line"));
  run.line = *object;
  return run;
}

Result<Spread> member(const std::vector<ColdRun>& runs, std::string_view name) {
  std::vector<double> values;
  for (const ColdRun& run : runs) {
    WEIR_ASSIGN(const double value, json::get_double(run.line, name));
    values.push_back(value);
  }
  return spread_of(std::move(values));
}

}  // namespace

Result<std::vector<ColdRun>> measure_cold_starts(const std::vector<std::string>& command, int runs) {
  if (command.empty() || runs < 1) return fail(ErrorCode::kInvalidArgument, "no command or no runs");
  WEIR_TRY(start_once(command));
  std::vector<ColdRun> result;
  for (int i = 0; i < runs; ++i) {
    WEIR_ASSIGN(ColdRun run, start_once(command));
    for (const char* name : {"load_s", "resident_bytes", "peak_resident_bytes"}) WEIR_TRY(json::get_double(run.line, name));
    result.push_back(std::move(run));
  }
  return result;
}

json::Object to_json(const std::vector<ColdRun>& runs) {
  std::vector<double> seconds;
  for (const ColdRun& run : runs) seconds.push_back(run.seconds);
  const Spread first = spread_of(seconds);
  const auto median = [&](std::string_view name) { return member(runs, name).value_or(Spread{}).median; };
  return {{"prompt", kColdPrompt},
          {"first_token_s", first.median},
          {"spread", json::Array{first.min, first.max}},
          {"load_s", median("load_s")},
          {"resident_bytes", static_cast<std::uint64_t>(median("resident_bytes"))},
          {"peak_resident_bytes", static_cast<std::uint64_t>(median("peak_resident_bytes"))},
          {"runs", first.count}};
}

Result<json::Object> take_first_token(engine::LoadedModel& loaded, double load_s, std::uint64_t seed) {
  const TimePoint start = steady_clock().now();
  engine::Runner runner(*loaded.model, {.max_tokens = kColdPrompt});
  WEIR_ASSIGN(const SeqId sequence, runner.open(kColdPrompt));
  const auto prompt = random_prompt(ordinary_tokens(loaded), kColdPrompt, seed, 0);
  WEIR_ASSIGN(const kernels::Matrix logits, runner.prefill(sequence, prompt, kColdPrompt));
  sampling::Sampler sampler({});
  WEIR_ASSIGN(const TokenId token, sampler.sample(logits.row_span(0), 0));
  const double prefill_s = to_seconds(steady_clock().now() - start);
  const ProcessMemory memory = process_memory();
  return json::Object{{"load_s", load_s},
                      {"prefill_s", prefill_s},
                      {"token", token},
                      {"resident_bytes", memory.resident},
                      {"peak_resident_bytes", memory.peak}};
}

}  // namespace weir::bench
