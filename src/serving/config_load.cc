// SPDX-License-Identifier: Apache-2.0
// File, environment and flags put into one configuration.
#include <fmt/core.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/file_io.h"
#include "serving/config_hint.h"
#include "serving/config_table.h"

namespace weir::serving {
namespace {

constexpr std::uint64_t kMostBytes = 4u << 20;
constexpr std::size_t kMostModels = 1000;

template <class Target>
std::vector<std::string_view> keys_of(const std::vector<ConfigRow<Target>>& rows) {
  std::vector<std::string_view> keys;
  for (const auto& row : rows) keys.push_back(row.key);
  return keys;
}

template <class Target>
const ConfigRow<Target>* find_row(const std::vector<ConfigRow<Target>>& rows, std::string_view key) {
  const auto found = std::ranges::find(rows, key, &ConfigRow<Target>::key);
  return found == rows.end() ? nullptr : &*found;
}

Result<ConfigValue> list_from_toml(const toml::array& array) {
  std::vector<std::string> items;
  for (const toml::node& item : array) {
    const auto* text = item.as_string();
    if (!text) return fail(ErrorCode::kInvalidArgument, "should be a list of texts");
    items.push_back(text->get());
  }
  return ConfigValue(std::move(items));
}

Result<ConfigValue> value_from_toml(const ValueRule& rule, const toml::node& node) {
  const bool texts = rule.type == ValueType::kText || rule.type == ValueType::kBytes || rule.type == ValueType::kDuration;
  if (const auto* text = node.as_string(); text && texts) return parse_value(rule, text->get());
  if (const auto* truth = node.as_boolean(); truth && rule.type == ValueType::kSwitch) return ConfigValue(truth->get());
  if (const toml::array* array = node.as_array(); array && rule.type == ValueType::kList) return list_from_toml(*array);
  if (const auto* whole = node.as_integer()) {
    if (rule.type == ValueType::kCount || rule.type == ValueType::kBytes) return ConfigValue(whole->get());
    if (rule.type == ValueType::kNumber) return ConfigValue(static_cast<double>(whole->get()));
    if (rule.type == ValueType::kDuration) return parse_value(rule, std::to_string(whole->get()));
  }
  if (const auto* number = node.as_floating_point()) {
    if (rule.type == ValueType::kNumber) return ConfigValue(number->get());
    if (rule.type == ValueType::kDuration) return parse_value(rule, fmt::format("{}", number->get()));
  }
  return fail(ErrorCode::kInvalidArgument, "should be {}", describe(rule));
}

template <class Target>
Status read_key(const std::vector<ConfigRow<Target>>& rows, std::string_view key, const toml::node& node, Target& target) {
  const auto* row = find_row(rows, key);
  if (!row) return fail(ErrorCode::kInvalidArgument, "there is no option '{}'{}", log::printable(key), hint_for(key, keys_of(rows)));
  auto value = value_from_toml(row->rule, node);
  if (!value) return std::unexpected(std::move(value.error()).with_context(std::string(key)));
  return apply(*row, target, *value);
}

Error at_line(Error error, std::string_view what, const toml::source_region& source) {
  return std::move(error).with_context(fmt::format("{}:{}", what, source.begin.line));
}

Status read_models(const toml::node& node, std::string_view what, std::vector<ModelSpec>& models) {
  if (!node.is_array_of_tables()) return fail(ErrorCode::kInvalidArgument, "{}: 'models' should be tables: [[models]]", what);
  for (const toml::node& item : *node.as_array()) {
    ModelSpec model;
    for (const auto& [key, value] : *item.as_table())
      if (auto read = read_key(model_rows(), key.str(), value, model); !read)
        return std::unexpected(at_line(std::move(read.error()), what, key.source()));
    if (model.name.empty()) return std::unexpected(at_line({ErrorCode::kInvalidArgument, "a model needs a 'name'"}, what, item.source()));
    if (model.source.empty()) model.source = model.name;
    if (models.size() >= kMostModels) return fail(ErrorCode::kInvalidArgument, "{}: more than {} models", what, kMostModels);
    models.push_back(std::move(model));
  }
  return {};
}

Status read_table(const toml::table& root, std::string_view what, ServeConfig& config) {
  for (const auto& [key, node] : root) {
    if (key.str() == "models") {
      WEIR_TRY(read_models(node, what, config.serve.models));
      continue;
    }
    const toml::table* section = node.as_table();
    if (!section) {
      if (auto read = read_key(serve_rows(), key.str(), node, config); !read)
        return std::unexpected(at_line(std::move(read.error()), what, key.source()));
      continue;
    }
    for (const auto& [inner, value] : *section)
      if (auto read = read_key(serve_rows(), fmt::format("{}.{}", key.str(), inner.str()), value, config); !read)
        return std::unexpected(at_line(std::move(read.error()), what, inner.source()));
  }
  return {};
}

Status apply_text(const ConfigRow<ServeConfig>& row, std::string_view text, ServeConfig& config) {
  auto value = parse_value(row.rule, text);
  if (!value) return std::unexpected(std::move(value.error()).with_context(std::string(row.key)));
  return apply(row, config, *value);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Those of this program's prefix.
Pairs process_environment() {
  Pairs pairs;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view line = *entry;
    const std::size_t equals = line.find('=');
    if (line.starts_with(kVariablePrefix) && equals != std::string_view::npos)
      pairs.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return pairs;
}

Status apply_environment(const Pairs& environment, ServeConfig& config) {
  std::map<std::string, const ConfigRow<ServeConfig>*, std::less<>> rows;
  std::vector<std::string_view> names = {"WEIR_SERVE_CONFIG", "WEIR_SERVE_MODELS"};
  for (const auto& row : serve_rows()) names.push_back(rows.emplace(variable_of(row), &row).first->first);
  for (const auto& [name, text] : environment) {
    if (!name.starts_with(kVariablePrefix) || text.empty() || name == "WEIR_SERVE_CONFIG" || name == "WEIR_SERVE_MODELS") continue;
    const auto row = rows.find(name);
    if (row == rows.end())
      return fail(ErrorCode::kInvalidArgument, "the environment variable {} means nothing{}", log::printable(name), hint_for(name, names));
    if (auto applied = apply_text(*row->second, text, config); !applied)
      return std::unexpected(std::move(applied.error()).with_context(name));
  }
  return {};
}

Status apply_flags(const Pairs& flags, ServeConfig& config) {
  std::map<std::string, const ConfigRow<ServeConfig>*, std::less<>> rows;
  std::vector<std::string_view> names;
  for (const auto& row : serve_rows()) {
    names.push_back(rows.emplace(flag_of(row), &row).first->first);
    rows.emplace(row.key, &row);
  }
  std::map<const ConfigRow<ServeConfig>*, std::string> lists;  // so far: repeats add up
  for (const auto& [name, text] : flags) {
    const auto row = rows.find(name);
    if (row == rows.end())
      return fail(ErrorCode::kInvalidArgument, "there is no option --{}{}", log::printable(name), hint_for(name, names));
    std::string all = text;
    if (row->second->rule.type == ValueType::kList) {
      std::string& before = lists[row->second];
      before += (before.empty() ? "" : ",") + text;
      all = before;
    }
    if (auto applied = apply_text(*row->second, all, config); !applied)
      return std::unexpected(std::move(applied.error()).with_context("--" + flag_of(*row->second)));
  }
  return {};
}

std::string variable(const Pairs& environment, std::string_view name) {
  const auto found = std::ranges::find(environment, name, &Pairs::value_type::first);
  return found == environment.end() ? std::string() : found->second;
}

Status add_models(std::vector<std::string> arguments, ServeConfig& config) {
  for (const std::string& argument : arguments) {
    WEIR_ASSIGN(ModelSpec model, parse_model_argument(argument));
    const auto same = std::ranges::find(config.serve.models, model.name, &ModelSpec::name);
    if (same == config.serve.models.end())
      config.serve.models.push_back(std::move(model));
    else if (model.source != model.name)  // NAME alone means the file's
      return fail(ErrorCode::kInvalidArgument, "the model '{}' is named twice", log::printable(model.name));
  }
  return {};
}

}  // namespace

Result<ModelSpec> parse_model_argument(std::string_view text) {
  ModelSpec model;
  const std::size_t equals = text.find('=');
  model.source = equals == std::string_view::npos ? text : text.substr(equals + 1);
  model.name = text.substr(0, std::min(equals, text.size()));
  if (equals == std::string_view::npos && (text.find('/') != std::string_view::npos || text.ends_with(".gguf"))) {
    const std::filesystem::path path(text);
    model.name = path.has_filename() ? path.stem().string() : path.parent_path().filename().string();
    if (path.has_filename() && path.extension() != ".gguf") model.name = path.filename().string();  // "Qwen2.5-0.5B" has no extension
  }
  const auto* row = find_row(model_rows(), "name");
  if (model.name.empty() || model.source.empty() || !check_value(row->rule, ConfigValue(model.name)))
    return fail(ErrorCode::kInvalidArgument, "'{}' is no model: it should be NAME, NAME=SOURCE or a path", log::printable(text));
  return model;
}

Status read_config_text(std::string_view toml, std::string_view what, ServeConfig& config) {
  try {
    return read_table(toml::parse(toml, what), what, config);
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::kInvalidArgument, "{}:{}: {}", what, error.source().begin.line, log::printable(error.description()));
  } catch (const std::exception& error) {
    return fail(ErrorCode::kInvalidArgument, "{}: {}", what, error.what());
  }
}

Result<ServeConfig> load_config(const ConfigInput& input) {
  const Pairs environment = input.environment ? *input.environment : process_environment();
  ServeConfig config;
  const std::filesystem::path file = input.file.empty() ? std::filesystem::path(variable(environment, "WEIR_SERVE_CONFIG")) : input.file;
  if (!file.empty()) {
    WEIR_ASSIGN(const std::string text, read_file(file, kMostBytes));
    WEIR_TRY(read_config_text(text, file.string(), config));
  }
  WEIR_TRY(apply_environment(environment, config));
  WEIR_TRY(apply_flags(input.flags, config));
  std::vector<std::string> models = input.models;
  if (models.empty()) {
    WEIR_ASSIGN(const ConfigValue listed, parse_value({.type = ValueType::kList}, variable(environment, "WEIR_SERVE_MODELS")));
    models = std::get<std::vector<std::string>>(listed);
  }
  WEIR_TRY(add_models(std::move(models), config));
  config.serve.keyed = !config.keys_file.empty();
  WEIR_TRY(check_config(config));
  return config;
}

}  // namespace weir::serving
