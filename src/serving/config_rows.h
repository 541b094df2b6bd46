// SPDX-License-Identifier: Apache-2.0
// How rows of the option table are written: one function for each type of value, given the place of the value as a lambda that works for
// reading and writing alike.
#pragma once

#include <limits>
#include <type_traits>
#include <utility>

#include "serving/config_table.h"

namespace weir::serving {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {
  using Inner = T;
};

// The value at a place as the table knows it, and back.
template <class Plain, class Place, class Target>
std::optional<ConfigValue> get_at(const Place& place, const Target& target) {
  const auto& at = place(target);
  using At = std::remove_cvref_t<decltype(at)>;
  if constexpr (IsOptional<At>::value) {
    if (!at) return std::nullopt;
    return ConfigValue(static_cast<Plain>(*at));
  } else {
    return ConfigValue(static_cast<Plain>(at));
  }
}
template <class Plain, class Place, class Target>
Status set_at(const Place& place, Target& target, const ConfigValue& value) {
  auto& at = place(target);
  using At = std::remove_cvref_t<decltype(at)>;
  const Plain& plain = std::get<Plain>(value);
  if constexpr (IsOptional<At>::value)
    at = static_cast<typename IsOptional<At>::Inner>(plain);
  else
    at = static_cast<At>(plain);
  return {};
}

template <class Target>
struct Rows {
  using Row = ConfigRow<Target>;
  std::vector<Row> rows = {};

  template <class Plain, class Place>
  Row& add(std::string_view key, std::string_view help, ValueRule rule, Place place) {
    rows.push_back({.key = key,
                    .help = help,
                    .rule = std::move(rule),
                    .set = [place](Target& target, const ConfigValue& value) { return set_at<Plain>(place, target, value); },
                    .get = [place](const Target& target) { return get_at<Plain>(place, target); }});
    return rows.back();
  }
  template <class Place>
  Row& yes_or_no(std::string_view key, std::string_view help, Place place) {
    return add<bool>(key, help, {.type = ValueType::kSwitch}, place);
  }
  template <class Place>
  Row& count(std::string_view key, double low, double high, std::string_view help, Place place) {
    return add<std::int64_t>(key, help, {.type = ValueType::kCount, .low = low, .high = high}, place);
  }
  template <class Place>
  Row& bytes(std::string_view key, double low, double high, std::string_view help, Place place) {
    return add<std::int64_t>(key, help, {.type = ValueType::kBytes, .low = low, .high = high}, place);
  }
  template <class Place>
  Row& number(std::string_view key, double low, double high, std::string_view help, Place place) {
    return add<double>(key, help, {.type = ValueType::kNumber, .low = low, .high = high}, place);
  }
  template <class Place>
  Row& duration(std::string_view key, double low_s, double high_s, std::string_view help, Place place) {
    return add<Duration>(key, help, {.type = ValueType::kDuration, .low = low_s, .high = high_s}, place);
  }
  template <class Place>
  Row& text(std::string_view key, std::string_view help, Place place) {
    return add<std::string>(key, help, {.type = ValueType::kText}, place);
  }
  template <class Place>
  Row& list(std::string_view key, std::string_view help, Place place) {
    return add<std::vector<std::string>>(key, help, {.type = ValueType::kList}, place);
  }
  Row& custom(std::string_view key, ValueType type, std::string_view help, decltype(Row::set) set, decltype(Row::get) get) {
    rows.push_back({.key = key, .help = help, .rule = {.type = type}, .set = std::move(set), .get = std::move(get)});
    return rows.back();
  }
  // A text that is one of a few; `names[i]` stands for `values[i]`.
  template <class Value, class Place>
  Row& choice(std::string_view key, std::vector<std::pair<std::string_view, Value>> names, std::string_view help, Place place) {
    ValueRule rule{.type = ValueType::kText};
    for (const auto& [name, value] : names) rule.choices.push_back(name);
    rows.push_back({.key = key,
                    .help = help,
                    .rule = std::move(rule),
                    .set = [place, names](Target& target, const ConfigValue& value) -> Status {
                      for (const auto& [name, meaning] : names)
                        if (std::get<std::string>(value) == name) place(target) = meaning;
                      return {};
                    },
                    .get = [place, names](const Target& target) -> std::optional<ConfigValue> {
                      for (const auto& [name, meaning] : names)
                        if (place(target) == meaning) return ConfigValue(std::string(name));
                      return std::nullopt;
                    }});
    return rows.back();
  }
};

}  // namespace weir::serving
