// SPDX-License-Identifier: Apache-2.0
// weir pull: bring models into the store.
#include "store/pull.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/units.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct PullVerb {
  std::vector<std::string> models;
  store::PullOptions options;
  bool quiet = false, json = false;
};

// Who vouches for the content, in words.
std::string verification(const store::Manifest& manifest) {
  std::size_t unverified = 0;
  for (const store::ManifestFile& file : manifest.files) unverified += file.verified_by == store::VerifiedBy::kNobody;
  return unverified == 0 ? "checked" : fmt::format("{} of {} files unverified", unverified, manifest.files.size());
}

Status pull_all(const PullVerb& verb) {
  WEIR_ASSIGN(const store::Store store, store::Store::standard());
  store::ProgressPrinter printer;
  store::Watcher watcher = printer.watcher([] { return interrupted(); });
  if (verb.quiet) watcher.on_progress = nullptr, watcher.on_note = nullptr;
  for (const std::string& what : verb.models) {
    WEIR_ASSIGN(const store::InstalledModel model, store::pull(store, what, verb.options, watcher));
    if (verb.json) {
      json::Object object = store::to_json(model.manifest);
      object["path"] = store.path_of(model).string();
      fmt::print("{}\n", boost::json::serialize(object));
    } else {
      fmt::print("{} is ready: {}, {}\n", model.name, format_bytes(model.manifest.total_size()), verification(model.manifest));
    }
  }
  return {};
}

}  // namespace

void add_pull(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("pull", "Download models; an interrupted download goes on where it stopped");
  const auto o = std::make_shared<PullVerb>();
  verb.add_option("MODEL", o->models,
                  "A name of `weir list`, hf:OWNER/REPO/FILE.gguf, hf:OWNER/REPO (a whole folder), or a https:// address")
      ->required();
  verb.add_option("--name", o->options.name, "Call the model this instead of the name its source suggests");
  verb.add_flag("--force", o->options.force, "Load it again although it is here");
  verb.add_flag("--allow-http", o->options.allow_http, "Accept unencrypted addresses beyond this machine");
  verb.add_flag("-q,--quiet", o->quiet, "No progress");
  verb.add_flag("--json", o->json, "Print each model as one line of JSON");
  verb.footer(
      "Models that need an account: accept the licence on the model's page, then set HF_TOKEN to an access token.\n"
      "They are stored in $WEIR_HOME, by default ~/.local/share/weir.\n");
  verb.callback([o, &exit_status] {
    if (o->models.size() > 1 && !o->options.name.empty()) {
      exit_status = report_error({ErrorCode::kInvalidArgument, "--name goes with one model only"});
      return;
    }
    catch_interrupts();
    if (Status done = pull_all(*o); !done) exit_status = report_error(done.error());
  });
}

}  // namespace weir::cli
