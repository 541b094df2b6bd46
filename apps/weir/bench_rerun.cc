// SPDX-License-Identifier: Apache-2.0
// weir bench rerun: the command of a run record once more, and whether it got worse. The command runs as a process of its own, of this very
// program, with the record's arguments as they are: no shell sees them, and nothing but weir's own bench verbs can be named.
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file_io.h"
#include "base/log.h"
#include "bench.h"
#include "bench/machine.h"
#include "bench_record.h"
#include "verbs.h"

extern char** environ;

namespace weir::cli {
namespace {

using loadgen::RunRecord;

struct RerunVerb {
  std::string record, keep;
  double threshold_percent = 10;
  bool with_outputs = false, with_key = false, dry_run = false;
};

Result<RunRecord> read_record(const std::string& path) {
  WEIR_ASSIGN(const std::string text, read_file(path));
  WEIR_ASSIGN(const json::Value value, json::parse(text, path));
  auto record = loadgen::parse_record(value);
  if (!record) return std::unexpected(std::move(record).error().with_context(path));
  return record;
}

// A folder of its own for the new record, gone at the end.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-rerun-XXXXXX").string();
    if (!::mkdtemp(name.data())) return fail(ErrorCode::kIo, "cannot make a folder for temporary files: {}", std::strerror(errno));
    return TemporaryFolder(std::move(name));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The record's command, for people: quoted where a shell would need it.
std::string shown(const std::vector<std::string>& command) {
  std::string out = "weir";
  for (const std::string& argument : command) {
    const bool plain =
        !argument.empty() &&
        argument.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@+%") == std::string::npos;
    std::string quoted;
    for (const char c : log::printable(argument)) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += plain ? " " + argument : " '" + quoted + "'";
  }
  return out;
}

// The exit status, or an error when it could not be started.
Result<int> run_command(const std::vector<std::string>& command, bool with_key) {
  std::vector<char*> arguments, variables;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  for (char** variable = environ; *variable; ++variable)
    if (with_key || !std::string_view(*variable).starts_with("OPENAI_API_KEY=")) variables.push_back(*variable);
  variables.push_back(nullptr);
  pid_t child = 0;
  std::fflush(stdout);
  if (const int error = ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), variables.data()))
    return fail(ErrorCode::kIo, "cannot start weir: {}", std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitInterrupted;
}

void print_surroundings(const RunRecord& before) {
  fmt::print("Recorded {} with weir {}; now {} with weir {}\n", log::printable(before.date), log::printable(before.weir), bench::utc_now(),
             WEIR_VERSION);
  const json::Value* then = json::find(before.machine, "cpu");
  const std::string cpu = bench::describe_machine().cpu;
  if (then && then->is_string() && std::string_view(then->get_string()) != cpu)
    fmt::print("Another processor: {} then, {} now\n", log::printable(std::string_view(then->get_string())), cpu);
  fmt::print("{}\n\n", shown(before.command));
}

// Whether nothing got worse.
Result<bool> run(const RerunVerb& verb) {
  WEIR_ASSIGN(const RunRecord before, read_record(verb.record));
  print_surroundings(before);
  if (verb.dry_run) return true;
  catch_interrupts();
  WEIR_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make());
  const std::string path = folder.path() + "/record.json";
  std::vector<std::string> command{"weir"};
  command.insert(command.end(), before.command.begin(), before.command.end());
  // An option that is given twice is refused, so that a record cannot send its own file elsewhere.
  command.push_back((verb.with_outputs ? "--rerun-record=" : "--only-record=") + path);
  WEIR_ASSIGN(const int status, run_command(command, verb.with_key));
  if (interrupted()) return fail(ErrorCode::kCancelled, "interrupted");
  auto after = read_record(path);
  if (!after) return fail(ErrorCode::kInternal, "the command ended with status {} and left no record: {}", status, after.error().message);
  if (!verb.keep.empty()) WEIR_TRY(write_json(verb.keep, loadgen::to_json(*after)));
  const loadgen::RecordChange change = loadgen::compare_records(before, *after, verb.threshold_percent / 100);
  fmt::print("\n{}", loadgen::to_text(change));
  if (before.valid && !after->valid) fmt::print("The new run is not valid.\n");
  if (change.figures.empty()) return fail(ErrorCode::kUnsupported, "{}: the record holds no figures to compare", verb.record);
  fmt::print("{}\n", change.regression ? fmt::format("Worse by more than {:g} %.", verb.threshold_percent) : "No regression.");
  return !change.regression;
}

}  // namespace

void add_bench_rerun(CLI::App& bench, int& exit_status) {
  auto verb = std::make_shared<RerunVerb>();
  CLI::App* app = bench.add_subcommand("rerun", "Run a recorded command again and compare: exit status 1 when it got worse");
  app->add_option("RECORD", verb->record, "What --record of a bench verb wrote")->required()->check(CLI::ExistingFile);
  app->add_option("--threshold", verb->threshold_percent, "Per cent by which a figure may be worse")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--record", verb->keep, "Write the new run's record");
  app->add_flag("--with-outputs", verb->with_outputs, "Let the command write the files that it names, over those of then");
  app->add_flag("--with-key", verb->with_key, "Let the command have OPENAI_API_KEY; a record from others could send it anywhere");
  app->add_flag("-n,--dry-run", verb->dry_run, "Only show the command");
  app->footer(
      "A record names servers and files whose text goes to them: look at one from others with --dry-run first. It runs only load,\n"
      "compare, engine and mlperf, writes no file without --with-outputs, and holds no keys: give those again in OPENAI_API_KEY.\n"
      "One run against one run shows large changes; 'weir bench compare' tells small ones from noise.\n"
      "Examples:\n"
      "  weir bench load http://localhost:8080 --rate 5 -d 60s --record monday.record\n"
      "  weir bench rerun monday.record --threshold 5 --record tuesday.record\n");
  app->callback([verb, &exit_status] {
    const auto fine = run(*verb);
    exit_status = !fine ? (interrupted() ? kExitInterrupted : report_error(fine.error())) : *fine ? 0 : kExitFailed;
  });
}

}  // namespace weir::cli
