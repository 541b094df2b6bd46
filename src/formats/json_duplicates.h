// SPDX-License-Identifier: Apache-2.0
// Parsers of JSON keep one of two equal keys and drop the other in silence. Where a key names a tensor that would hide a
// damaged or deceitful file, so headers are searched for repeated keys before they are believed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::formats {

// The first key that occurs twice in one object of this JSON text, escapes resolved; nothing when all differ. Text that is not
// valid JSON is searched as far as it is valid.
std::optional<std::string> find_duplicate_key(std::string_view json);

}  // namespace weir::formats
