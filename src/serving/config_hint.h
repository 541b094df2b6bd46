// SPDX-License-Identifier: Apache-2.0
// What a misspelt name may have meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::serving {

// The nearest of `names` by edit distance, or nothing when none is near.
std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> names);

// "; did you mean 'x'?" or nothing, to be put behind a message.
std::string hint_for(std::string_view name, std::span<const std::string_view> names);

}  // namespace weir::serving
