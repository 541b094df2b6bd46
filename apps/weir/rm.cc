// SPDX-License-Identifier: Apache-2.0
// weir rm: remove models from the store.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/units.h"
#include "store/store.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct RmVerb {
  std::vector<std::string> names;
  bool yes = false;
};

Result<bool> confirmed(const store::InstalledModel& model) {
  if (::isatty(STDIN_FILENO) != 1) return fail(ErrorCode::kInvalidArgument, "there is nobody to ask; say --yes to remove '{}'", model.name);
  const std::string size = model.manifest.files.empty() ? "" : fmt::format(" ({})", format_bytes(model.manifest.total_size()));
  fmt::print("Remove {}{}? [y/N] ", model.name, size);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return !answer.empty() && (answer.front() == 'y' || answer.front() == 'Y');
}

Status remove_all(const RmVerb& options) {
  WEIR_ASSIGN(const store::Store store, store::Store::standard());
  for (const std::string& name : options.names) {
    WEIR_ASSIGN(const store::InstalledModel model, store.find(name));
    if (!options.yes) {
      WEIR_ASSIGN(const bool yes, confirmed(model));
      if (!yes) {
        fmt::print("{} stays\n", model.name);
        continue;
      }
    }
    WEIR_ASSIGN(const std::uint64_t bytes, store.remove(model.name));
    fmt::print("removed {}, {} freed\n", model.name, format_bytes(bytes));
  }
  return {};
}

}  // namespace

void add_rm(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("rm", "Remove models that were pulled");
  const auto o = std::make_shared<RmVerb>();
  verb.add_option("NAME", o->names, "Names as `weir list` shows them")->required();
  verb.add_flag("-y,--yes", o->yes, "Do not ask");
  verb.callback([o, &exit_status] {
    if (Status done = remove_all(*o); !done) exit_status = report_error(done.error());
  });
}

}  // namespace weir::cli
