// SPDX-License-Identifier: Apache-2.0
// From what a user types (a name, a file, a folder) to the path that the loaders open.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace weir::store {

class Store;

// A GGUF file, a Hugging Face folder (or a folder holding one GGUF file), or an installed model's name → the path to
// open. kNotFound with the command that helps otherwise.
Result<std::filesystem::path> resolve(std::string_view model);
Result<std::filesystem::path> resolve(std::string_view model, const Store& store);

}  // namespace weir::store
