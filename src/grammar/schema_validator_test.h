// SPDX-License-Identifier: Apache-2.0
// For this folder's tests only: a plain JSON Schema validator (draft 2020-12, formats on), written without a thought of grammars so
// that it can judge what they let through. It is checked with the instances of the reference data.
#pragma once

#include <string>

#include "base/json.h"

namespace weir::grammar::testing {

// Whether the value is an instance of the schema. `root` is the document that references point into.
bool is_valid(const json::Value& value, const json::Value& schema, const json::Value& root);

}  // namespace weir::grammar::testing
