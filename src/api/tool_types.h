// SPDX-License-Identifier: Apache-2.0
// What the schema of a tool says of its arguments' types, for formats that write values without JSON's quotes: is 42 a number or a text?
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/generation_request.h"

namespace weir::api {

inline constexpr std::uint8_t kTypeString = 1, kTypeNumber = 2, kTypeBool = 4, kTypeNull = 8, kTypeObject = 16, kTypeArray = 32,
                              kTypeAny = 63;

// The types that a schema allows, as bits; kTypeAny when it does not say. `root` is the document that references point into.
std::uint8_t types_of(const json::Value& schema, const json::Object& root);
// The schema behind a reference within the document ("#/$defs/name"), as often as it is one; nullptr: it leads nowhere.
const json::Object* resolved(const json::Object& schema, const json::Object& root);

struct ToolTypes {
  std::string name;
  std::map<std::string, std::uint8_t, std::less<>> arguments = {};
  std::uint8_t types(std::string_view argument) const;
};

std::vector<ToolTypes> tool_types(const std::vector<Tool>& tools);

// A value as a model writes it between tags: JSON text. What is no value of another type that is allowed is a string.
std::string json_value_of(std::string_view text, std::uint8_t types);

}  // namespace weir::api
