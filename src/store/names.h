// SPDX-License-Identifier: Apache-2.0
// Which names may become files and folders of the store. Names come from catalogues, URLs and archives, so that nothing
// which could leave the model's own folder, or clash with the store's own files, is ever let through.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::store {

// A model: letters, digits, '.', '_', '-', at most 100, beginning with a letter or a digit.
Status check_model_name(std::string_view name);

// A file inside a model's folder, perhaps in sub-folders: relative, '/' between plain components.
Status check_file_name(std::string_view name);

// Text from outside made fit for a terminal: control characters escaped (C1 too), cut after `limit` bytes with "…".
std::string printable(std::string_view text, std::size_t limit = 200);

std::string lower_case(std::string_view text);

// The names most like `wanted`, best first, at most three; for "did you mean".
std::vector<std::string> similar_names(std::string_view wanted, const std::vector<std::string>& known);

}  // namespace weir::store
