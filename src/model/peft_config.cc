// SPDX-License-Identifier: Apache-2.0
#include "model/peft_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace weir::model {
namespace {

constexpr std::int64_t kMostRank = 1 << 20;

// Keys that say where the adapter came from, how it was trained, or what its tensors show anyway. fan_in_fan_out is about the model's
// weight: A and B stand the same way whatever it says. What is not listed must be off.
constexpr std::string_view kHarmless[] = {
    "alpha_pattern",
    "auto_mapping",
    "base_model_name_or_path",
    "corda_config",
    "eva_config",
    "exclude_modules",
    "fan_in_fan_out",
    "inference_mode",
    "layers_pattern",
    "loftq_config",
    "layers_to_transform",
    "lora_alpha",
    "lora_dropout",
    "megatron_core",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
    "use_rslora",
    "bias",
    "init_lora_weights",
};

bool is_off(const json::Value& value) {
  if (value.is_null()) return true;
  if (value.is_bool()) return !value.get_bool();
  if (value.is_array()) return value.get_array().empty();
  if (value.is_object()) return value.get_object().empty();
  if (value.is_string()) return value.get_string().empty();
  return false;
}

Status check_keys(const json::Object& config) {
  WEIR_ASSIGN(const std::string type, json::get_string(config, "peft_type"));
  if (type != "LORA") return fail(ErrorCode::kUnsupported, "peft_type \"{}\": only LORA is supported", type);
  WEIR_ASSIGN(const std::string bias, json::get_string_or(config, "bias", "none"));
  if (bias != "none") return fail(ErrorCode::kUnsupported, "bias \"{}\": adapters that change biases are not supported", bias);
  // The other ways to begin change the model's own weights too, which are then not those that the adapter was trained on.
  constexpr std::string_view kPlainStarts[] = {"gaussian", "eva", "orthogonal"};
  const json::Value* start = json::find(config, "init_lora_weights");
  if (start && !start->is_bool()) {
    WEIR_ASSIGN(const std::string name, json::get_string(config, "init_lora_weights"));
    if (std::ranges::find(kPlainStarts, name) == std::end(kPlainStarts))
      return fail(ErrorCode::kUnsupported,
                  "init_lora_weights \"{}\" changes the model's own weights; convert the adapter to plain LoRA when it is saved", name);
  }
  for (const auto& [key, value] : config) {
    const std::string_view name(key.data(), key.size());
    if (!is_off(value) && std::ranges::find(kHarmless, name) == std::end(kHarmless))
      return fail(ErrorCode::kUnsupported, "{} is set, which is not supported: only plain LoRA is", name);
  }
  return {};
}

}  // namespace

// Keys are regular expressions that end where the module's name does; names with or without a leading ^ are what is in use.
Result<PeftConfig::Patterns> PeftConfig::patterns(const json::Object& config, std::string_view key) {
  Patterns out;
  const json::Value* value = json::find(config, key);
  if (!value) return out;
  WEIR_ASSIGN(const json::Object* object, json::as_object(*value, key));
  for (const auto& [name, entry] : *object) {
    std::string text(name.data(), name.size());
    for (std::size_t at; (at = text.find("\\.")) != std::string::npos;) text.erase(at, 1);
    if (text.empty() || text.find_first_of("*+?[](){}|$\\", 0) != std::string::npos || text.find('^', 1) != std::string::npos)
      return fail(ErrorCode::kUnsupported, "{}: \"{}\" is a regular expression, only names of modules are supported", key, text);
    WEIR_ASSIGN(const double number, json::to_double(entry, key));
    if (!std::isfinite(number)) return fail(ErrorCode::kCorrupt, "{}: {} for \"{}\"", key, number, text);
    out.emplace_back(std::move(text), number);
  }
  return out;
}

double PeftConfig::value(const Patterns& patterns, std::string_view module, double fallback) {
  for (const auto& [pattern, number] : patterns) {
    const std::string_view name = pattern;
    if (name.starts_with('^') ? module == name.substr(1) : module == name) return number;
    if (!name.starts_with('^') && module.size() > name.size() && module.ends_with(name) && module[module.size() - name.size() - 1] == '.')
      return number;
  }
  return fallback;
}

Result<PeftConfig> PeftConfig::read(const json::Object& config) {
  WEIR_TRY(check_keys(config));
  PeftConfig out;
  WEIR_ASSIGN(out.rank_, json::get_int_or(config, "r", 8));
  WEIR_ASSIGN(out.alpha_, json::get_double_or(config, "lora_alpha", 8));
  WEIR_ASSIGN(out.root_, json::get_bool_or(config, "use_rslora", false));
  WEIR_ASSIGN(out.ranks_, patterns(config, "rank_pattern"));
  WEIR_ASSIGN(out.alphas_, patterns(config, "alpha_pattern"));
  const auto bad = [](double r) { return !(r >= 1 && r <= kMostRank && r == std::floor(r)); };
  if (bad(static_cast<double>(out.rank_))) return fail(ErrorCode::kCorrupt, "r is {}", out.rank_);
  for (const auto& [name, r] : out.ranks_)
    if (bad(r)) return fail(ErrorCode::kCorrupt, "rank_pattern: {} for \"{}\"", r, name);
  if (!std::isfinite(out.alpha_)) return fail(ErrorCode::kCorrupt, "lora_alpha is {}", out.alpha_);
  return out;
}

std::int64_t PeftConfig::rank(std::string_view module) const {
  return static_cast<std::int64_t>(value(ranks_, module, static_cast<double>(rank_)));
}

double PeftConfig::scale(std::string_view module) const {
  const auto r = static_cast<double>(rank(module));
  return value(alphas_, module, alpha_) / (root_ ? std::sqrt(r) : r);
}

}  // namespace weir::model
