// SPDX-License-Identifier: Apache-2.0
// The table of options: for each its key, its help, what it may be, and where it lies in the configuration. Everything else (file,
// environment, flags, help, the printed configuration) is made from it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/config.h"
#include "serving/config_value.h"

namespace weir::serving {

template <class Target>
struct ConfigRow {
  std::string_view key;  // "limits.max_connections"
  std::string_view help;
  ValueRule rule;
  // What passed check_value(); errors are of values that take more to judge.
  std::function<Status(Target&, const ConfigValue&)> set;
  std::function<std::optional<ConfigValue>(const Target&)> get;  // nothing: not set
  std::string_view flag = {};                                    // a shorter name than the key's
  bool secret = false;
};

const std::vector<ConfigRow<ServeConfig>>& serve_rows();
const std::vector<ConfigRow<ModelSpec>>& model_rows();

std::string flag_of(const ConfigRow<ServeConfig>& row);      // "limits-max-connections"
std::string variable_of(const ConfigRow<ServeConfig>& row);  // "WEIR_SERVE_LIMITS_MAX_CONNECTIONS"
inline constexpr std::string_view kVariablePrefix = "WEIR_SERVE_";

// check_value() and set(); errors begin with the key.
template <class Target>
Status apply(const ConfigRow<Target>& row, Target& target, const ConfigValue& value) {
  Status status = check_value(row.rule, value);
  if (status) status = row.set(target, value);
  if (!status) return std::unexpected(std::move(status.error()).with_context(std::string(row.key)));
  return {};
}

}  // namespace weir::serving
