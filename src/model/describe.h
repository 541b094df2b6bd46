// SPDX-License-Identifier: Apache-2.0
// Traits in words, for people: what `weir show` prints about how a model works.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/traits.h"

namespace weir::model {

// (topic, sentence) pairs in a fixed order: "layers" → "32 of grouped attention (32 heads, 8 KV heads of 128)", …
std::vector<std::pair<std::string, std::string>> describe(const Traits& traits);

}  // namespace weir::model
