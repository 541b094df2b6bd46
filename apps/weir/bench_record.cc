// SPDX-License-Identifier: Apache-2.0
#include "bench_record.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/file_io.h"
#include "bench.h"
#include "bench/machine.h"

namespace weir::cli {
namespace {

// This process's arguments from "bench" on, as the system keeps them.
Result<std::vector<std::string>> own_command() {
  WEIR_ASSIGN(const std::string text, read_file("/proc/self/cmdline", 64u << 20));
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    arguments.emplace_back(text, at, end - at);
    at = end + 1;
  }
  const auto bench = std::find(arguments.begin(), arguments.end(), "bench");
  return std::vector<std::string>(bench, arguments.end());
}

}  // namespace

void RecordOptions::add_to(CLI::App& app) {
  app.add_option("--record", record, "Write a run record, which 'weir bench rerun' runs again and compares with")->group("Output");
  app.add_option("--rerun-record", rerun, "What rerun passes: the record goes there")->group("");
  app.add_option("--only-record", only, "What rerun passes: a record there, and no other file")->group("");
}

Status RecordOptions::write(const std::string& verb, std::uint64_t seed, bool valid, std::vector<loadgen::Figure> figures,
                            json::Value results) const {
  if (!wanted()) return {};
  loadgen::RunRecord out{.verb = verb,
                         .command = {},
                         .weir = WEIR_VERSION,
                         .date = bench::utc_now(),
                         .machine = bench::to_json(bench::describe_machine()),
                         .environment = {},
                         .seed = seed,
                         .valid = valid,
                         .figures = std::move(figures),
                         .results = std::move(results)};
  WEIR_ASSIGN(const std::vector<std::string> command, own_command());
  out.command = loadgen::without_secrets(command);
  if (const char* isa = std::getenv("WEIR_ISA")) out.environment["WEIR_ISA"] = isa;
  const std::string& target = !only.empty() ? only : !rerun.empty() ? rerun : record;
  return write_json(target, loadgen::to_json(out));
}

}  // namespace weir::cli
