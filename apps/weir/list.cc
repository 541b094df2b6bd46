// SPDX-License-Identifier: Apache-2.0
// weir list: the models that are here, and those of the catalogue that can be pulled.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/units.h"
#include "store/catalogue.h"
#include "store/store.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct ListVerb {
  bool json = false, installed_only = false;
};

struct Listing {
  std::vector<store::InstalledModel> installed;
  std::vector<store::CatalogueEntry> available;  // not installed
};

Result<Listing> gather(const store::Store& store) {
  WEIR_ASSIGN(const store::Catalogue catalogue, store::Catalogue::load());
  Listing listing{.installed = store.list(), .available = {}};
  for (const store::CatalogueEntry& entry : catalogue.entries())
    if (std::ranges::find(listing.installed, entry.name, &store::InstalledModel::name) == listing.installed.end())
      listing.available.push_back(entry);
  return listing;
}

json::Object to_json(const store::Store& store, const Listing& listing) {
  json::Array installed, available;
  for (const store::InstalledModel& model : listing.installed) {
    json::Object object = store::to_json(model.manifest);
    object["name"] = model.name;
    object["ready"] = model.problem.empty();
    if (!model.problem.empty()) object["problem"] = model.problem;
    object["path"] = store.path_of(model).string();
    object["bytes"] = static_cast<std::int64_t>(model.manifest.total_size());
    installed.push_back(std::move(object));
  }
  for (const store::CatalogueEntry& entry : listing.available) {
    json::Object object{{"name", entry.name}, {"description", entry.description}, {"licence", entry.licence}, {"gated", entry.gated}};
    if (entry.parameters) object["parameters"] = static_cast<std::int64_t>(entry.parameters);
    if (const auto bytes = entry.total_size()) object["bytes"] = static_cast<std::int64_t>(*bytes);
    available.push_back(std::move(object));
  }
  return {{"store", store.root().string()}, {"installed", std::move(installed)}, {"available", std::move(available)}};
}

std::string or_dash(std::uint64_t value, std::string (*format)(std::uint64_t)) { return value ? format(value) : "-"; }

void print_row(std::string_view name, const std::string& parameters, const std::string& size, std::string_view text) {
  fmt::print("  {:<24} {:>7} {:>9}  {}\n", name, parameters, size, text);
}

std::string what_to_do(const store::InstalledModel& model) {
  const std::string& source = model.manifest.source;
  return fmt::format("{}: `weir pull {}` finishes it, `weir rm {}` removes it", model.problem, source.empty() ? model.name : source,
                     model.name);
}

void print(const store::Store& store, const Listing& listing, bool installed_only) {
  fmt::print("Here ({}):\n", store.root().string());
  for (const store::InstalledModel& model : listing.installed)
    print_row(model.name, or_dash(model.manifest.parameters, format_count), or_dash(model.manifest.total_size(), format_bytes),
              model.problem.empty() ? model.manifest.description : what_to_do(model));
  if (listing.installed.empty()) fmt::print("  nothing yet\n");
  if (installed_only) return;
  fmt::print("To get with weir pull NAME:\n");
  for (const store::CatalogueEntry& entry : listing.available)
    print_row(entry.name, or_dash(entry.parameters, format_count), or_dash(entry.total_size().value_or(0), format_bytes),
              entry.description + (entry.gated ? " (needs HF_TOKEN)" : ""));
}

Status list(const ListVerb& options) {
  WEIR_ASSIGN(const store::Store store, store::Store::standard());
  WEIR_ASSIGN(const Listing listing, gather(store));
  if (options.json)
    fmt::print("{}\n", boost::json::serialize(to_json(store, listing)));
  else
    print(store, listing, options.installed_only);
  return {};
}

}  // namespace

void add_list(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("list", "Show the models that are here and those to get");
  const auto o = std::make_shared<ListVerb>();
  verb.add_flag("--json", o->json, "Print JSON");
  verb.add_flag("--installed", o->installed_only, "Only what is here");
  verb.callback([o, &exit_status] {
    if (Status done = list(*o); !done) exit_status = report_error(done.error());
  });
}

}  // namespace weir::cli
