// SPDX-License-Identifier: Apache-2.0
#include "serving/key_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "serving/config_hint.h"

namespace weir::serving {
namespace {

constexpr std::array<std::string_view, 12> kFields = {
    "name",         "hash",  "certificate", "tenant", "requests_per_minute", "tokens_per_minute", "concurrent", "models",
    "max_priority", "admin", "expires",     "comment"};
constexpr std::size_t kLongestText = 1024, kMostModels = 1000;

Status read_text(const toml::table& table, std::string_view key, std::string& value) {
  const toml::node* node = table.get(key);
  if (!node) return {};
  const auto* text = node->as_string();
  if (!text || text->get().empty() || text->get().size() > kLongestText)
    return fail(ErrorCode::kCorrupt, "'{}' should be a text of 1 to {} characters", key, kLongestText);
  for (const char c : text->get())
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return fail(ErrorCode::kCorrupt, "'{}' holds a control character", key);
  value = text->get();
  return {};
}

template <class Integer>
Status read_count(const toml::table& table, std::string_view key, std::int64_t low, std::int64_t high, Integer& value) {
  const toml::node* node = table.get(key);
  if (!node) return {};
  const auto* number = node->as_integer();
  if (!number || number->get() < low || number->get() > high)
    return fail(ErrorCode::kCorrupt, "'{}' should be a whole number from {} to {}", key, low, high);
  value = static_cast<Integer>(number->get());
  return {};
}

Status read_switch(const toml::table& table, std::string_view key, bool& value) {
  const toml::node* node = table.get(key);
  if (!node) return {};
  if (!node->is_boolean()) return fail(ErrorCode::kCorrupt, "'{}' should be true or false", key);
  value = node->as_boolean()->get();
  return {};
}

Status read_models(const toml::table& table, std::vector<std::string>& models) {
  const toml::node* node = table.get("models");
  if (!node) return {};
  const toml::array* list = node->as_array();
  if (!list || list->empty() || list->size() > kMostModels)
    return fail(ErrorCode::kCorrupt, "'models' should list 1 to {} names; leave it out for all models", kMostModels);
  for (const toml::node& item : *list) {
    const auto* text = item.as_string();
    if (!text || text->get().empty()) return fail(ErrorCode::kCorrupt, "'models' should hold names");
    models.push_back(text->get());
  }
  return {};
}

// A day means its end, UTC.
Result<std::int64_t> seconds_of(const toml::date& date, const toml::time& time, int offset_minutes) {
  const std::chrono::year_month_day day{std::chrono::year(date.year), std::chrono::month(date.month), std::chrono::day(date.day)};
  if (!day.ok()) return fail(ErrorCode::kCorrupt, "'expires' is no day of the calendar");
  const std::int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
  return days * 86400 + time.hour * 3600 + time.minute * 60 + time.second - std::int64_t{offset_minutes} * 60;
}

Status read_expiry(const toml::table& table, std::optional<std::int64_t>& expires) {
  const toml::node* node = table.get("expires");
  if (!node) return {};
  if (const auto* date = node->as_date()) {
    WEIR_ASSIGN(expires, seconds_of(date->get(), toml::time{}, 0));
    *expires += 86400;
    return {};
  }
  if (const auto* moment = node->as_date_time()) {
    const int offset = moment->get().offset ? moment->get().offset->minutes : 0;
    WEIR_ASSIGN(expires, seconds_of(moment->get().date, moment->get().time, offset));
    return {};
  }
  return fail(ErrorCode::kCorrupt, "'expires' should be a day or a time without quotes: 2027-01-31 or 2027-01-31T12:00:00Z");
}

Result<KeyEntry> read_entry(const toml::table& table, const KeyLimits& defaults) {
  for (const auto& [key, value] : table)
    if (std::ranges::find(kFields, key.str()) == kFields.end())
      return fail(ErrorCode::kCorrupt, "there is no '{}' of a key{}", key.str(), hint_for(key.str(), kFields));
  KeyEntry entry;
  KeyRecord& record = entry.record;
  record.limits = defaults;
  std::string hash, comment;
  WEIR_TRY(read_text(table, "name", record.name));
  if (record.name.empty()) return fail(ErrorCode::kCorrupt, "a key needs a 'name'");
  WEIR_TRY(read_text(table, "hash", hash));
  WEIR_TRY(read_text(table, "certificate", record.certificate));
  if (hash.empty() == record.certificate.empty())
    return fail(ErrorCode::kCorrupt, "the key '{}' needs either a 'hash' or a 'certificate'", record.name);
  if (!hash.empty()) {
    WEIR_ASSIGN(entry.hash, parse_key_hash(hash));
  }
  record.tenant = record.name;
  WEIR_TRY(read_text(table, "tenant", record.tenant));
  WEIR_TRY(read_text(table, "comment", comment));
  constexpr std::int64_t kMuch = std::int64_t{1} << 50;
  WEIR_TRY(read_count(table, "requests_per_minute", 0, kMuch, record.limits.requests_per_minute));
  WEIR_TRY(read_count(table, "tokens_per_minute", 0, kMuch, record.limits.tokens_per_minute));
  WEIR_TRY(read_count(table, "concurrent", 0, kMuch, record.limits.concurrent));
  WEIR_TRY(read_count(table, "max_priority", -1'000'000, 1'000'000, record.max_priority));
  WEIR_TRY(read_switch(table, "admin", record.admin));
  WEIR_TRY(read_models(table, record.models));
  WEIR_TRY(read_expiry(table, record.expires));
  return entry;
}

Result<std::vector<KeyEntry>> read_entries(const toml::table& root, std::string_view what, const KeyLimits& defaults) {
  for (const auto& [key, value] : root)
    if (key.str() != "keys")
      return fail(ErrorCode::kCorrupt, "{}:{}: '{}' means nothing here: a keys file has [[keys]] only", what, key.source().begin.line,
                  key.str());
  std::vector<KeyEntry> entries;
  const toml::node* keys = root.get("keys");
  if (!keys) return entries;
  if (!keys->is_array_of_tables()) return fail(ErrorCode::kCorrupt, "{}: 'keys' should be tables: [[keys]]", what);
  const toml::array& list = *keys->as_array();
  if (list.size() > KeyTable::kMostKeys) return fail(ErrorCode::kExhausted, "{}: more than {} keys", what, KeyTable::kMostKeys);
  for (const toml::node& item : list) {
    const int line = static_cast<int>(item.source().begin.line);
    auto entry = read_entry(*item.as_table(), defaults);
    if (!entry) return std::unexpected(std::move(entry.error()).with_context(fmt::format("{}:{}", what, line)));
    entry->line = line;
    entries.push_back(*std::move(entry));
  }
  return entries;
}

}  // namespace

Result<std::vector<KeyEntry>> parse_key_file(std::string_view toml, std::string_view what, const KeyLimits& defaults) {
  try {
    return read_entries(toml::parse(toml, what), what, defaults);
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::kCorrupt, "{}:{}: {}", what, error.source().begin.line, error.description());
  } catch (const std::exception& error) {
    return fail(ErrorCode::kCorrupt, "{}: {}", what, error.what());
  }
}

}  // namespace weir::serving
