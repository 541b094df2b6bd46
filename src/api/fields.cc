// SPDX-License-Identifier: Apache-2.0
#include "api/fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "formats/json_duplicates.h"

namespace weir::api {
namespace {

constexpr std::size_t kMaxBodyBytes = 256u << 20;  // the server's limit for a route is lower
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxShown = 80;  // bytes of a client's text that an error repeats

// A client's text within a message: cut at a character's border.
std::string shown(std::string_view text) {
  if (text.size() <= kMaxShown) return std::string(text);
  std::size_t end = kMaxShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

// Numbers in messages as a client would write them: 2, 0.5, -2.
std::string number_text(double value) {
  return fmt::format("{:.17g}", value).size() > 12 ? fmt::format("{:.6g}", value) : fmt::format("{:g}", value);
}

std::string allowed_text(const Range& range) {
  const bool has_low = range.low > std::numeric_limits<double>::lowest(), has_high = range.high < std::numeric_limits<double>::max();
  const char* low = range.above_low ? "above" : "at least";
  if (has_low && has_high) return fmt::format("{} {} and at most {}", low, number_text(range.low), number_text(range.high));
  if (has_low) return fmt::format("{} {}", low, number_text(range.low));
  return fmt::format("at most {}", number_text(range.high));
}

std::string allowed_text(const IntRange& range) {
  const bool has_low = range.low > std::numeric_limits<std::int64_t>::min(),
             has_high = range.high < std::numeric_limits<std::int64_t>::max();
  if (has_low && has_high) return fmt::format("at least {} and at most {}", range.low, range.high);
  if (has_low) return fmt::format("at least {}", range.low);
  return fmt::format("at most {}", range.high);
}

// Levenshtein's distance, for "did you mean"; names are short.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// A schema that also takes null, as clients write what they do not set.
json::Value or_null(json::Value value) {
  if (!value.is_object()) return value;
  json::Object& object = value.get_object();
  const json::Value null_type(json::Object{{"type", "null"}});
  if (json::Value* any = object.if_contains("anyOf"); any && any->is_array()) {
    any->get_array().push_back(null_type);
  } else if (json::Value* values = object.if_contains("enum"); values && values->is_array()) {
    values->get_array().push_back(nullptr);
    if (json::Value* type = object.if_contains("type"); type && type->is_string()) *type = json::Array{*type, "null"};
  } else if (json::Value* type = object.if_contains("type"); type && type->is_string()) {
    if (type->get_string() != "null") *type = json::Array{*type, "null"};
  } else if (object.contains("$ref")) {
    return json::Object{{"anyOf", {std::move(value), null_type}}};
  }
  return value;
}

}  // namespace

std::string Path::text() const {
  if (!parent_) return {};
  std::string above = parent_->text();
  if (is_index_) return above + fmt::format("[{}]", index_);
  return above.empty() ? shown(key_) : above + "." + shown(key_);
}

std::unexpected<ApiError> refuse(const Path& path, std::string message, std::string code) {
  std::string place = path.text();
  std::string whole = place.empty() ? std::move(message) : fmt::format("'{}' {}", place, message);
  return std::unexpected(bad_request(std::move(place), std::move(whole), std::move(code)));
}

std::string_view kind_name(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null: return "null";
    case boost::json::kind::bool_: return "a boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
    case boost::json::kind::double_: return "a number";
    case boost::json::kind::string: return "a string";
    case boost::json::kind::array: return "an array";
    case boost::json::kind::object: return "an object";
  }
  return "unknown";
}

std::unexpected<ApiError> wrong_type(const Path& path, std::string_view wanted, const json::Value& value) {
  return refuse(path, fmt::format("should be {}, but is {}", wanted, kind_name(value)), "invalid_type");
}

ApiResult<json::Object> parse_body(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return refuse(Path(), "the request has no body; a JSON object is needed", "invalid_json");
  auto value = json::parse(body, "the request's body", {.max_bytes = kMaxBodyBytes, .max_depth = kMaxDepth});
  if (!value) return refuse(Path(), std::move(value).error().message, "invalid_json");
  if (!value->is_object())
    return refuse(Path(), fmt::format("the request's body should be a JSON object, but is {}", kind_name(*value)), "invalid_type");
  if (const auto twice = formats::find_duplicate_key(body))
    return std::unexpected(
        bad_request(shown(*twice), fmt::format("the key '{}' is given twice in one object", shown(*twice)), "duplicate_key"));
  return std::move(value->get_object());
}

ApiResult<double> read_number(const json::Value& value, const Path& path, const Range& range) {
  double number = 0;
  if (value.is_double()) {
    number = value.get_double();
  } else if (value.is_int64()) {
    number = static_cast<double>(value.get_int64());
  } else if (value.is_uint64()) {
    number = static_cast<double>(value.get_uint64());
  } else {
    return wrong_type(path, "a number", value);
  }
  if (!std::isfinite(number)) return refuse(path, "is too large a number");
  if (number < range.low || number > range.high || (range.above_low && number == range.low))
    return refuse(path, fmt::format("should be {}, but is {}", allowed_text(range), number_text(number)), "out_of_range");
  return number;
}

ApiResult<std::int64_t> read_integer(const json::Value& value, const Path& path, const IntRange& range) {
  std::int64_t number = 0;
  if (value.is_int64()) {
    number = value.get_int64();
  } else if (value.is_uint64()) {
    return refuse(path, fmt::format("should be {}, but is {}", allowed_text(range), value.get_uint64()), "out_of_range");
  } else if (value.is_double()) {
    const double d = value.get_double();
    if (d != std::floor(d)) return refuse(path, fmt::format("should be an integer, but is {}", d), "invalid_type");  // also not a number
    if (!(std::abs(d) < 9.0e15)) return refuse(path, fmt::format("should be {}, but is {:g}", allowed_text(range), d), "out_of_range");
    number = static_cast<std::int64_t>(d);
  } else {
    return wrong_type(path, "an integer", value);
  }
  if (number < range.low || number > range.high)
    return refuse(path, fmt::format("should be {}, but is {}", allowed_text(range), number), "out_of_range");
  return number;
}

ApiResult<bool> read_bool(const json::Value& value, const Path& path) {
  if (!value.is_bool()) return wrong_type(path, "a boolean", value);
  return value.get_bool();
}

ApiResult<std::string> read_text(const json::Value& value, const Path& path) {
  if (!value.is_string()) return wrong_type(path, "a string", value);
  return std::string(value.get_string());
}

ApiResult<const json::Object*> read_object(const json::Value& value, const Path& path) {
  if (!value.is_object()) return wrong_type(path, "an object", value);
  return &value.get_object();
}

ApiResult<const json::Array*> read_array(const json::Value& value, const Path& path) {
  if (!value.is_array()) return wrong_type(path, "an array", value);
  return &value.get_array();
}

ApiResult<std::vector<std::string>> read_texts(const json::Value& value, const Path& path, std::size_t most) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  if (array->size() > most) return refuse(path, fmt::format("has {} entries; {} are allowed", array->size(), most), "too_many");
  std::vector<std::string> texts;
  texts.reserve(array->size());
  for (std::size_t i = 0; i < array->size(); ++i) {
    WEIR_ASSIGN(std::string text, read_text((*array)[i], Path(path, i)));
    texts.push_back(std::move(text));
  }
  return texts;
}

ApiResult<std::string_view> read_name(const json::Value& value, const Path& path, std::initializer_list<std::string_view> names) {
  if (!value.is_string()) return wrong_type(path, "a string", value);
  const std::string_view given = value.get_string();
  for (const std::string_view name : names)
    if (name == given) return name;
  std::string list;
  for (const std::string_view name : names) list += fmt::format("{}'{}'", list.empty() ? "" : ", ", name);
  return refuse(path, fmt::format("should be {}{}, but is '{}'", names.size() > 1 ? "one of " : "", list, shown(given)));
}

ApiResult<const json::Value*> require(const json::Object& object, std::string_view key, const Path& path) {
  if (const json::Value* value = json::find(object, key)) return value;
  return refuse(Path(path, key), "is missing", "missing_required_parameter");
}

json::Value schema(std::string_view text) {
  auto value = json::parse(text, "a schema");
  WEIR_CHECK(value.has_value(), "{}: {}", value.error().message, text);
  return std::move(*value);
}

json::Object number_schema(const Range& range) {
  json::Object result{{"type", "number"}};
  if (range.low > std::numeric_limits<double>::lowest()) result[range.above_low ? "exclusiveMinimum" : "minimum"] = range.low;
  if (range.high < std::numeric_limits<double>::max()) result["maximum"] = range.high;
  return result;
}

json::Object integer_schema(const IntRange& range) {
  json::Object result{{"type", "integer"}};
  // Whole numbers beyond 2^53 are refused where they come as floating point, so that much is what the schema promises.
  constexpr std::int64_t kExact = 9'000'000'000'000'000;
  result["minimum"] = std::max(range.low, -kExact);
  result["maximum"] = std::min(range.high, kExact);
  return result;
}

FieldTable::Field& FieldTable::add(std::string_view name, json::Value schema, Read read) {
  WEIR_CHECK(!find(name), "the field {} is in the table twice", name);
  fields_.push_back({.name = std::string(name), .schema = std::move(schema), .read = std::move(read)});
  return fields_.back();
}

const FieldTable::Field* FieldTable::find(std::string_view name) const {
  const auto it = std::find_if(fields_.begin(), fields_.end(), [&](const Field& field) { return field.name == name; });
  return it == fields_.end() ? nullptr : &*it;
}

std::unexpected<ApiError> FieldTable::unknown(std::string_view name, const Path& path) const {
  std::string_view nearest;
  std::size_t best = 3;  // further away it is another word
  if (name.size() < 64) {
    for (const Field& field : fields_) {
      const std::size_t far = distance(name, field.name);
      if (far < best && far * 2 <= field.name.size()) std::tie(best, nearest) = std::pair(far, std::string_view(field.name));
    }
  }
  std::string message = "is not a field that is known here";
  if (!nearest.empty()) message += fmt::format("; did you mean '{}'?", nearest);
  return refuse(Path(path, name), std::move(message), "unknown_parameter");
}

ApiStatus FieldTable::read(const json::Object& object, const Path& path, void* into) const {
  for (const auto& [key, value] : object) {
    const Field* field = find(key);
    if (!field) return unknown(key, path);
    if (value.is_null()) continue;
    WEIR_TRY(field->read(value, Path(path, key), into));
  }
  for (const Field& field : fields_)
    if (field.required) WEIR_TRY(require(object, field.name, path));
  return {};
}

json::Object FieldTable::schema() const {
  json::Object properties;
  json::Array required;
  for (const Field& field : fields_) {
    properties[field.name] = field.required ? field.schema : or_null(field.schema);
    if (field.required) required.emplace_back(field.name);
  }
  json::Object result{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) result["required"] = std::move(required);
  return result;
}

}  // namespace weir::api
