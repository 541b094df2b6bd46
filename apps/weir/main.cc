// SPDX-License-Identifier: Apache-2.0
// weir: the command line. Verbs are in files of their own; `weir help VERB` shows a verb's text.
#include <fmt/core.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "base/log.h"
#include "verbs.h"

namespace {

// `weir help` and `weir help VERB …` mean `weir --help` and `weir VERB … --help`.
std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (arguments.empty()) arguments.emplace_back("--help");
  return arguments;
}

// The first argument that is no option names a verb; CLI11 itself would only say that one is missing.
bool names_a_verb(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument.starts_with('-')) continue;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
      if (verb->get_name() == argument) return true;
    fmt::print(stderr, "weir: there is no verb '{}' (weir help lists them)\n", weir::log::printable(argument));
    return false;
  }
  return true;
}

// What was printed must have arrived: a full disk or a closed pipe is a failure even when the work was done.
int with_output_checked(int exit_status) {
  const bool arrived = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (arrived || exit_status != 0) return exit_status;
  fmt::print(stderr, "weir: cannot write to standard output: {}\n", std::strerror(errno));
  return weir::cli::kExitFailed;
}

int run(int argc, char** argv) {
  CLI::App app{"Weir serves AI models on your own machine: run, measure and compare them.", "weir"};
  app.set_version_flag("--version", "weir " WEIR_VERSION);
  app.require_subcommand(1);
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "Say more about what is being done");
  app.parse_complete_callback([&] {
    if (verbose) weir::log::set_level(weir::log::Level::kDebug);
  });
  app.footer(
      "Examples:\n"
      "  weir run smollm2 \"Why is the sky blue?\"    answer at the terminal\n"
      "  weir serve smollm2                         OpenAI's, Anthropic's and Ollama's clients at http://127.0.0.1:8080\n"
      "  weir list                                  models here and models to get\n"
      "  weir help run                              all about a verb\n");

  int exit_status = 0;
  weir::cli::add_run(app, exit_status);
  weir::cli::add_serve(app, exit_status);
  weir::cli::add_pull(app, exit_status);
  weir::cli::add_list(app, exit_status);
  weir::cli::add_show(app, exit_status);
  weir::cli::add_rm(app, exit_status);
  weir::cli::add_tokenize(app, exit_status);
  weir::cli::add_embed(app, exit_status);
  weir::cli::add_rerank(app, exit_status);
  weir::cli::add_eval(app, exit_status);
  weir::cli::add_bench(app, exit_status);

  auto arguments = arguments_of(argc, argv);
  if (!names_a_verb(app, arguments)) return weir::cli::kExitUsage;
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes them last first
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : weir::cli::kExitUsage;
  }
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error, not a death
  ::signal(SIGXFSZ, SIG_IGN);  // nor is a quota on file sizes
  try {
    return with_output_checked(run(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "weir: {}\n", error.what());
    return weir::cli::kExitFailed;
  }
}
