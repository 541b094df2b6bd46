// SPDX-License-Identifier: Apache-2.0
// The configuration of `weir serve`: a TOML file, the environment (WEIR_SERVE_…) and flags, with one precedence: flags, environment, file,
// defaults. One table of options drives all four, the help and the printed configuration; unknown names and values out of range are
// errors that name the nearest valid one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "serving/limits.h"
#include "serving/serve_options.h"
#include "telemetry/access_log.h"
#include "telemetry/spans.h"

namespace weir::serving {

struct ServeConfig {
  ServeOptions serve = {};

  // Who may call. Without a keys file everybody may do everything.
  std::filesystem::path keys_file = {};
  KeyLimits default_limits = {};  // of keys that name none
  bool metrics_need_key = false;  // /metrics is open to whoever reaches the port otherwise

  log::Level log_level = log::Level::kInfo;
  telemetry::AccessLogOptions access_log = {};
  bool metrics = true;
  telemetry::SpanOptions spans = {};
};

// One option, as a command line needs it.
struct OptionInfo {
  std::string_view key;      // in the file: "limits.max_connections"
  std::string flag;          // "--limits-max-connections", or a shorter one of its own
  std::string variable;      // "WEIR_SERVE_LIMITS_MAX_CONNECTIONS"
  std::string_view section;  // the help's heading
  std::string_view help;
  std::string values;         // "yes or no", "0 … 65535", "first-come | priority | …", "a duration: 500ms, 30s, 5m"
  std::string default_value;  // as the file would have it
  bool is_switch = false;     // --flag alone means yes, --no-flag no
  bool is_list = false;       // the flag may be given several times; one value may hold several with commas
};
// All of them, in the order of the documentation. Options of single models (the file's [[models]]) are in model_options().
const std::vector<OptionInfo>& serve_option_table();
const std::vector<OptionInfo>& model_option_table();

struct ConfigInput {
  std::filesystem::path file = {};  // empty: WEIR_SERVE_CONFIG, if that is set
  // Flag (without dashes) or key → value, in their order. A list's repeats add up; they replace the file's list.
  std::vector<std::pair<std::string, std::string>> flags = {};
  std::vector<std::string> models = {};  // NAME, NAME=SOURCE or SOURCE, besides the file's; empty: WEIR_SERVE_MODELS, separated by commas
  std::optional<std::vector<std::pair<std::string, std::string>>> environment = {};  // absent: the process's own
};

// Errors name file and line, variable or flag, and what would be right. Variables WEIR_SERVE_… that mean nothing are errors; empty ones
// count as not set.
Result<ServeConfig> load_config(const ConfigInput& input);
// The file's part alone, from its text.
Status read_config_text(std::string_view toml, std::string_view what, ServeConfig& config);
// What contradicts itself although each value is right.
Status check_config(const ServeConfig& config);
// "NAME", "NAME=SOURCE", or a path, whose file name becomes the name.
Result<ModelSpec> parse_model_argument(std::string_view text);

// A file that load_config() reads back to the same configuration, with a comment for each option; secrets are left out, and it says so.
std::string print_config(const ServeConfig& config);

}  // namespace weir::serving
