// SPDX-License-Identifier: Apache-2.0
// The configuration as a file with comments, and the table of options for help and documentation.
#include <fmt/core.h>

#include "serving/config_table.h"

namespace weir::serving {
namespace {

std::string_view section_of(std::string_view key) { return key.find('.') == std::string_view::npos ? "" : key.substr(0, key.find('.')); }
std::string_view name_of(std::string_view key) { return key.substr(key.find('.') == std::string_view::npos ? 0 : key.find('.') + 1); }

void print_models(const std::vector<ModelSpec>& models, std::string& out) {
  const ModelSpec defaults;
  for (const ModelSpec& model : models) {
    out += "\n[[models]]\n";
    for (const auto& row : model_rows()) {
      const auto value = row.get(model);
      if (value && value != row.get(defaults)) out += fmt::format("{} = {}\n", row.key, toml_of(row.rule, *value));
    }
  }
}

template <class Target>
OptionInfo info_of(const ConfigRow<Target>& row, const Target& defaults) {
  OptionInfo info;
  info.key = row.key;
  info.section = section_of(row.key);
  info.help = row.help;
  info.values = describe(row.rule);
  const auto value = row.get(defaults);
  info.default_value = value ? toml_of(row.rule, *value) : std::string();
  info.is_switch = row.rule.type == ValueType::kSwitch;
  info.is_list = row.rule.type == ValueType::kList;
  return info;
}

}  // namespace

std::string print_config(const ServeConfig& config) {
  std::string out = "# The configuration of weir serve, as flags, environment, file and defaults make it.\n";
  std::string_view section;
  for (const auto& row : serve_rows()) {
    if (section_of(row.key) != section) {
      section = section_of(row.key);
      out += fmt::format("\n[{}]\n", section);
    }
    const auto value = row.get(config);
    if (!value) continue;
    if (row.secret) {
      const bool set = value != row.get(ServeConfig());
      out += fmt::format("# {}: {}\n", name_of(row.key), set ? "set, and not shown here" : "not set");
      continue;
    }
    out += fmt::format("# {}\n{} = {}\n", row.help, name_of(row.key), toml_of(row.rule, *value));
  }
  print_models(config.serve.models, out);
  return out;
}

const std::vector<OptionInfo>& serve_option_table() {
  static const std::vector<OptionInfo> table = [] {
    std::vector<OptionInfo> all;
    const ServeConfig defaults;
    for (const auto& row : serve_rows()) {
      OptionInfo info = info_of(row, defaults);
      info.flag = "--" + flag_of(row);
      info.variable = variable_of(row);
      all.push_back(std::move(info));
    }
    return all;
  }();
  return table;
}

const std::vector<OptionInfo>& model_option_table() {
  static const std::vector<OptionInfo> table = [] {
    std::vector<OptionInfo> all;
    for (const auto& row : model_rows()) all.push_back(info_of(row, ModelSpec()));
    return all;
  }();
  return table;
}

}  // namespace weir::serving
