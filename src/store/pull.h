// SPDX-License-Identifier: Apache-2.0
// Brings a model into the store: its files are fetched and checked one by one, the manifest records each, and only a
// manifest marked complete makes the model usable. Interrupted pulls go on where they stopped.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "store/download.h"
#include "store/progress.h"
#include "store/store.h"

namespace weir::store {

struct PullOptions {
  std::string name;         // instead of the name that the source suggests
  bool force = false;       // load it again although it is here
  bool allow_http = false;  // plain http beyond this machine
  DownloadLimits limits;
};

// `what` is a catalogue name, hf:OWNER/REPO[@REVISION][/FILE], or a URL.
Result<InstalledModel> pull(const Store& store, std::string_view what, const PullOptions& options, const Watcher& watcher);

// The path of a model, which is pulled first when it has a name of the catalogue and is not here yet.
Result<std::filesystem::path> ensure(std::string_view model, const Watcher& watcher);

}  // namespace weir::store
