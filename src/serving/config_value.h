// SPDX-License-Identifier: Apache-2.0
// One value of the configuration: its type, its range, and its three written forms (text of a flag or variable, TOML, help).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace weir::serving {

enum class ValueType { kSwitch, kCount, kBytes, kNumber, kDuration, kText, kList };

// Durations are their own alternative; sizes in bytes are counts.
using ConfigValue = std::variant<bool, std::int64_t, double, Duration, std::string, std::vector<std::string>>;

// What a value may be.
struct ValueRule {
  ValueType type = ValueType::kText;
  double low = 0, high = 0;                          // of counts, bytes, numbers, and durations in seconds
  std::vector<std::string_view> choices = {};        // of texts; empty: any
  std::size_t most_bytes = 4096, most_items = 1000;  // of texts and lists
};

// From a flag or variable. Switches: yes/no, true/false, on/off, 1/0; bytes: "512", "32MiB", "4GB"; durations: "500ms", "30s", "5m", "1h",
// or seconds; lists: separated by commas.
Result<ConfigValue> parse_value(const ValueRule& rule, std::string_view text);
// Range, choices, sizes, no control characters.
Status check_value(const ValueRule& rule, const ConfigValue& value);

std::string toml_of(const ValueRule& rule, const ConfigValue& value);  // "\"30s\"", "4096", "[\"a\"]"
std::string describe(const ValueRule& rule);                           // "0 to 65535", "first-come, priority, …"
std::string toml_string(std::string_view text);

}  // namespace weir::serving
