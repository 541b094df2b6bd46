// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <cmath>

#include "formats/gguf_reader.h"

namespace weir::model {
namespace {

// Calls visit(name) for each alternative of "a|b|c" until it returns true.
template <class Visit>
bool any_alternative(const char* alternatives, Visit visit) {
  if (!alternatives) return false;
  std::string_view rest = alternatives;
  while (true) {
    const std::size_t bar = rest.find('|');
    if (visit(rest.substr(0, bar))) return true;
    if (bar == std::string_view::npos) return false;
    rest.remove_prefix(bar + 1);
  }
}

}  // namespace

Config::Config(json::Object hf, const json::Object& defaults) : hf_(std::move(hf)) {
  for (const auto& member : defaults)
    if (!hf_.contains(member.key())) hf_.insert(member);
}

std::optional<std::string> Config::name_of(Key key) const {
  std::optional<std::string> found;
  any_alternative(gguf_ ? key.gguf : key.hf, [&](std::string_view name) {
    std::string full = gguf_ ? fmt::format("{}.{}", architecture_, name) : std::string(name);
    if (!(gguf_ ? gguf_->has(full) : json::find(hf_, full) != nullptr)) return false;
    found = std::move(full);
    return true;
  });
  return found;
}

std::string Config::describe(Key key) const {
  if (const auto name = name_of(key)) return *name;
  const char* wanted = gguf_ ? key.gguf : key.hf;
  if (!wanted) return "?";
  const std::string_view first = std::string_view(wanted).substr(0, std::string_view(wanted).find('|'));
  return gguf_ ? fmt::format("{}.{}", architecture_, first) : std::string(first);
}

void Config::missing(Key key) { fail(ErrorCode::kCorrupt, "{}: required, but absent", describe(key)); }

template <class T, class HfGetter, class GgufGetter>
std::optional<T> Config::read(Key key, HfGetter from_hf, GgufGetter from_gguf) {
  const auto name = name_of(key);
  if (!name) return std::nullopt;
  Result<T> value = gguf_ ? from_gguf(*gguf_, *name) : from_hf(hf_, *name);
  if (value) return std::move(*value);
  keep(std::move(value).error());
  return std::nullopt;
}

std::optional<std::int64_t> Config::read_int(Key key) {
  return read<std::int64_t>(
      key, [](const json::Object& o, const std::string& n) { return json::get_int(o, n); },
      [](const formats::GgufFile& f, const std::string& n) { return f.get_int(n); });
}

std::optional<double> Config::read_real(Key key) {
  return read<double>(
      key, [](const json::Object& o, const std::string& n) { return json::get_double(o, n); },
      [](const formats::GgufFile& f, const std::string& n) { return f.get_double(n); });
}

std::int32_t Config::size(Key key, std::int32_t low, std::int32_t high) {
  if (!has(key)) missing(key);
  return size_or(key, low, low, high);
}

std::int32_t Config::size_or(Key key, std::int32_t fallback, std::int32_t low, std::int32_t high) {
  const auto value = read_int(key);
  if (!value) return fallback;
  if (*value >= low && *value <= high) return static_cast<std::int32_t>(*value);
  fail(ErrorCode::kCorrupt, "{} is {}, expected {} to {}", describe(key), *value, low, high);
  return fallback;
}

double Config::real(Key key, double low, double high) {
  if (!has(key)) missing(key);
  return real_or(key, low, low, high);
}

double Config::real_or(Key key, double fallback, double low, double high) {
  const auto value = read_real(key);
  if (!value) return fallback;
  if (*value >= low && *value <= high) return *value;  // false for NaN
  fail(ErrorCode::kCorrupt, "{} is {}, expected {} to {}", describe(key), *value, low, high);
  return fallback;
}

bool Config::flag_or(Key key, bool fallback) {
  return read<bool>(
             key, [](const json::Object& o, const std::string& n) { return json::get_bool(o, n); },
             [](const formats::GgufFile& f, const std::string& n) { return f.get_bool(n); })
      .value_or(fallback);
}

std::string Config::text(Key key) {
  if (!has(key)) missing(key);
  return text_or(key, {});
}

std::string Config::text_or(Key key, std::string fallback) {
  return read<std::string>(
             key, [](const json::Object& o, const std::string& n) { return json::get_string(o, n); },
             [](const formats::GgufFile& f, const std::string& n) { return f.get_string(n); })
      .value_or(std::move(fallback));
}

namespace {

// The elements of a JSON array, each converted by `convert`.
template <class T, class Convert>
Result<std::vector<T>> json_array(const json::Object& object, const std::string& name, std::size_t max_count, Convert convert) {
  const json::Value* value = json::find(object, name);
  const json::Array* array = value ? value->if_array() : nullptr;
  if (!array) return weir::fail(ErrorCode::kCorrupt, "{}: expected an array", name);
  if (array->size() > max_count)
    return weir::fail(ErrorCode::kCorrupt, "{}: {} entries, at most {} expected", name, array->size(), max_count);
  std::vector<T> out;
  out.reserve(array->size());
  for (const json::Value& entry : *array) {
    WEIR_ASSIGN(T item, convert(entry, name));
    out.push_back(std::move(item));
  }
  return out;
}

template <class T>
Result<std::vector<T>> checked_count(std::optional<std::vector<T>> values, const std::string& name, std::size_t max_count) {
  if (!values) return weir::fail(ErrorCode::kCorrupt, "{}: expected an array of numbers", name);
  if (values->size() > max_count)
    return weir::fail(ErrorCode::kCorrupt, "{}: {} entries, at most {} expected", name, values->size(), max_count);
  return std::move(*values);
}

Result<std::int64_t> to_integer(const json::Value& value, std::string_view what) {
  if (const bool* flag = value.if_bool()) return *flag ? 1 : 0;
  return json::to_int(value, what);
}

Result<std::string> to_text(const json::Value& value, std::string_view what) {
  if (const auto* text = value.if_string()) return std::string(text->data(), text->size());
  return weir::fail(ErrorCode::kCorrupt, "{}: expected an array of strings", what);
}

}  // namespace

std::vector<std::int64_t> Config::integers(Key key, std::size_t max_count) {
  return read<std::vector<std::int64_t>>(
             key, [&](const json::Object& o, const std::string& n) { return json_array<std::int64_t>(o, n, max_count, to_integer); },
             [&](const formats::GgufFile& f, const std::string& n) { return checked_count(f.get_ints(n), n, max_count); })
      .value_or(std::vector<std::int64_t>{});
}

std::vector<double> Config::reals(Key key, std::size_t max_count) {
  auto values = read<std::vector<double>>(
                    key, [&](const json::Object& o, const std::string& n) { return json_array<double>(o, n, max_count, json::to_double); },
                    [&](const formats::GgufFile& f, const std::string& n) { return checked_count(f.get_doubles(n), n, max_count); })
                    .value_or(std::vector<double>{});
  for (const double v : values)
    if (std::isnan(v)) fail(ErrorCode::kCorrupt, "{} holds {}", describe(key), v);
  return values;
}

std::vector<std::string> Config::texts(Key key, std::size_t max_count) {
  return read<std::vector<std::string>>(
             key, [&](const json::Object& o, const std::string& n) { return json_array<std::string>(o, n, max_count, to_text); },
             [&](const formats::GgufFile& f, const std::string& n) -> Result<std::vector<std::string>> {
               const auto* values = f.get_strings(n);
               if (!values || values->size() > max_count)
                 return weir::fail(ErrorCode::kCorrupt, "{}: expected up to {} strings", n, max_count);
               return *values;
             })
      .value_or(std::vector<std::string>{});
}

std::vector<std::int64_t> Config::per_layer(Key key, std::size_t count, std::int64_t fallback) {
  const auto name = name_of(key);
  if (!name) return std::vector<std::int64_t>(count, fallback);
  const bool is_array = gguf_ ? gguf_->get_ints(*name).has_value() : json::find(hf_, *name)->is_array();
  if (!is_array) return std::vector<std::int64_t>(count, read_int(key).value_or(fallback));
  std::vector<std::int64_t> values = integers(key);
  if (values.size() < count) {
    fail(ErrorCode::kCorrupt, "{} has {} entries for {} layers", *name, values.size(), count);
    values.resize(count, fallback);
  }
  return values;
}

void Config::expect_flag(Key key, bool expected, std::string_view why) {
  if (flag_or(key, expected) != expected) fail(ErrorCode::kUnsupported, "{} = {}: {}", describe(key), !expected, why);
}

void Config::expect_text(Key key, std::string_view expected) {
  const std::string value = text_or(key, std::string(expected));
  if (value != expected) fail(ErrorCode::kUnsupported, "{} = \"{}\" is not supported, only \"{}\"", describe(key), value, expected);
}

const json::Object* Config::object(const char* key) const {
  const json::Value* value = gguf_ ? nullptr : json::find(hf_, key);
  return value ? value->if_object() : nullptr;
}

}  // namespace weir::model
