// SPDX-License-Identifier: Apache-2.0
#include "serving/config_value.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "http/message.h"
#include "serving/config_hint.h"

namespace weir::serving {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
// The larger first: the first that divides a value is how it is printed.
constexpr std::array kTimeUnits = {Unit{"h", 3600e9}, Unit{"m", 60e9}, Unit{"s", 1e9}, Unit{"ms", 1e6}, Unit{"us", 1e3}, Unit{"ns", 1}};
constexpr std::array kByteUnits = {Unit{"TiB", 1099511627776.0},
                                   Unit{"GiB", 1073741824.0},
                                   Unit{"MiB", 1048576.0},
                                   Unit{"KiB", 1024.0},
                                   Unit{"TB", 1e12},
                                   Unit{"GB", 1e9},
                                   Unit{"MB", 1e6},
                                   Unit{"KB", 1e3},
                                   Unit{"B", 1}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// A number and a unit; without one, `bare` counts. Nothing when it is neither, or beyond what 64 bits hold.
template <std::size_t kSize>
std::optional<std::int64_t> with_unit(std::string_view text, const std::array<Unit, kSize>& units, double bare) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.-+eE"), text.size());
  // "5e" would take the E of no unit here: units have none.
  const auto number = number_of<double>(text.substr(0, digits));
  if (!number || !std::isfinite(*number)) return std::nullopt;
  const std::string_view name = trimmed(text.substr(digits));
  double factor = bare;
  if (!name.empty()) {
    const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return http::equal_ignoring_case(u.name, name); });
    if (unit == units.end()) return std::nullopt;
    factor = unit->factor;
  }
  const double value = *number * factor;
  if (std::fabs(value) > 9e18) return std::nullopt;
  if (const auto whole = number_of<std::int64_t>(text.substr(0, digits)); whole && factor == 1) return *whole;  // all its digits
  return static_cast<std::int64_t>(std::llround(value));
}

template <std::size_t kSize>
std::string in_units(std::int64_t value, const std::array<Unit, kSize>& units, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    const auto factor = static_cast<std::int64_t>(units[i].factor);
    if (value % factor == 0) return fmt::format("{}{}", value / factor, units[i].name);
  }
  return std::to_string(value);
}

std::string duration_text(Duration value) {
  return value == Duration::zero() ? "0s" : in_units(value.count(), kTimeUnits, 0, kTimeUnits.size());
}

std::optional<bool> switch_of(std::string_view text) {
  for (const std::string_view yes : {"yes", "true", "on", "1"})
    if (http::equal_ignoring_case(text, yes)) return true;
  for (const std::string_view no : {"no", "false", "off", "0"})
    if (http::equal_ignoring_case(text, no)) return false;
  return std::nullopt;
}

std::vector<std::string> items_of(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (const std::string_view item = trimmed(text.substr(0, comma)); !item.empty()) items.emplace_back(item);
    text.remove_prefix(std::min(text.size(), comma + 1));
  }
  return items;
}

template <class Value>
Result<ConfigValue> or_fail(std::optional<Value> value, const ValueRule& rule) {
  if (!value) return fail(ErrorCode::kInvalidArgument, "should be {}", describe(rule));
  return ConfigValue(std::move(*value));
}

Status check_text(const ValueRule& rule, std::string_view text) {
  if (text.size() > rule.most_bytes) return fail(ErrorCode::kInvalidArgument, "should have at most {} bytes", rule.most_bytes);
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return fail(ErrorCode::kInvalidArgument, "holds a control character");
  if (rule.choices.empty() || std::ranges::find(rule.choices, text) != rule.choices.end()) return {};
  return fail(ErrorCode::kInvalidArgument, "should be {}{}", describe(rule), hint_for(text, rule.choices));
}

Status check_range(const ValueRule& rule, double value) {
  if (value >= rule.low && value <= rule.high) return {};
  return fail(ErrorCode::kInvalidArgument, "should be {}", describe(rule));
}

std::string plain(double value) { return fmt::format("{}", value); }

}  // namespace

Result<ConfigValue> parse_value(const ValueRule& rule, std::string_view text) {
  text = rule.type == ValueType::kText ? text : trimmed(text);
  switch (rule.type) {
    case ValueType::kSwitch: return or_fail(switch_of(text), rule);
    case ValueType::kCount: return or_fail(number_of<std::int64_t>(text), rule);
    case ValueType::kNumber: return or_fail(number_of<double>(text), rule);
    case ValueType::kBytes: return or_fail(with_unit(text, kByteUnits, 1), rule);
    case ValueType::kDuration: {
      const auto nanoseconds = with_unit(text, kTimeUnits, 1e9);
      return or_fail(nanoseconds ? std::optional(Duration(*nanoseconds)) : std::nullopt, rule);
    }
    case ValueType::kList: return ConfigValue(items_of(text));
    case ValueType::kText: break;
  }
  return ConfigValue(std::string(text));
}

Status check_value(const ValueRule& rule, const ConfigValue& value) {
  if (const auto* count = std::get_if<std::int64_t>(&value)) return check_range(rule, static_cast<double>(*count));
  if (const auto* number = std::get_if<double>(&value)) return check_range(rule, *number);
  if (const auto* duration = std::get_if<Duration>(&value)) return check_range(rule, to_seconds(*duration));
  if (const auto* text = std::get_if<std::string>(&value)) return check_text(rule, *text);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    if (list->size() > rule.most_items) return fail(ErrorCode::kInvalidArgument, "should have at most {} items", rule.most_items);
    for (const std::string& item : *list) WEIR_TRY(check_text(rule, item));
  }
  return {};
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  return out + '"';
}

std::string toml_of(const ValueRule& rule, const ConfigValue& value) {
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
  if (const auto* count = std::get_if<std::int64_t>(&value)) {
    if (rule.type != ValueType::kBytes || *count < 1024) return std::to_string(*count);
    const std::string text = in_units(*count, kByteUnits, 0, 4);  // the binary ones
    return text.back() == 'B' ? toml_string(text) : text;
  }
  if (const auto* number = std::get_if<double>(&value)) {
    const std::string text = plain(*number);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  if (const auto* duration = std::get_if<Duration>(&value)) return toml_string(duration_text(*duration));
  if (const auto* text = std::get_if<std::string>(&value)) return toml_string(*text);
  std::string out = "[";
  for (const std::string& item : std::get<std::vector<std::string>>(value)) out += (out.size() > 1 ? ", " : "") + toml_string(item);
  return out + "]";
}

std::string describe(const ValueRule& rule) {
  switch (rule.type) {
    case ValueType::kSwitch: return "true or false";
    case ValueType::kCount: return fmt::format("a whole number from {:.0f} to {:.0f}", rule.low, rule.high);
    case ValueType::kNumber: return fmt::format("a number from {} to {}", plain(rule.low), plain(rule.high));
    case ValueType::kBytes:
      return fmt::format("a size such as 512KiB or 4GB, from {:.0f} B to {}", rule.low,
                         in_units(static_cast<std::int64_t>(std::min(rule.high, 9e18)), kByteUnits, 0, 4));
    case ValueType::kDuration:
      return fmt::format("a duration such as 500ms, 30s or 5m, from {} to {}", duration_text(Duration(std::llround(rule.low * 1e9))),
                         duration_text(Duration(std::llround(rule.high * 1e9))));
    case ValueType::kList: return "a list of texts";
    case ValueType::kText: break;
  }
  if (rule.choices.empty()) return "a text";
  std::string text;
  for (std::size_t i = 0; i < rule.choices.size(); ++i)
    text += std::string(i == 0 ? "" : i + 1 == rule.choices.size() ? " or " : ", ") + std::string(rule.choices[i]);
  return text;
}

}  // namespace weir::serving
