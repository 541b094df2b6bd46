// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <boost/json/stream_parser.hpp>
#include <cmath>
#include <utility>

namespace weir::json {
namespace {

const char* kind_name(const Value& value) {
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

std::unexpected<Error> wrong_kind(std::string_view what, const char* wanted, const Value& value) {
  return fail(ErrorCode::kCorrupt, "'{}' should be {} but is {}", what, wanted, kind_name(value));
}

std::unexpected<Error> missing(std::string_view key) { return fail(ErrorCode::kCorrupt, "'{}' is missing", key); }

Result<bool> to_bool(const Value& value, std::string_view what) {
  if (!value.is_bool()) return wrong_kind(what, "a boolean", value);
  return value.get_bool();
}

Result<std::string> to_string(const Value& value, std::string_view what) {
  if (!value.is_string()) return wrong_kind(what, "a string", value);
  return std::string(value.get_string());
}

template <class Convert>
auto required(const Object& object, std::string_view key, Convert convert) -> decltype(convert(Value{}, key)) {
  const Value* value = find(object, key);
  if (!value) return missing(key);
  return convert(*value, key);
}

template <class T, class Convert>
Result<T> optional(const Object& object, std::string_view key, T fallback, Convert convert) {
  const Value* value = find(object, key);
  if (!value) return fallback;
  return convert(*value, key);
}

// Python's json module writes NaN, Infinity and -Infinity; Boost.JSON has no option for them, so they become null
// outside strings before parsing.
std::string without_non_finite(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (in_string && c == '\\' && i + 1 < text.size()) {
      out.append(text.substr(i, 2));
      i += 2;
      continue;
    }
    if (c == '"') in_string = !in_string;
    std::size_t skip = 0;
    if (!in_string) {
      for (std::string_view word : {std::string_view("-Infinity"), std::string_view("Infinity"), std::string_view("NaN")})
        if (text.substr(i).starts_with(word)) skip = word.size();
    }
    if (skip) {
      out += "null";
      i += skip;
    } else {
      out += c;
      ++i;
    }
  }
  return out;
}

}  // namespace

Result<Value> parse(std::string_view text, std::string_view what, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes)
    return fail(ErrorCode::kExhausted, "{}: JSON of {} bytes is over the limit of {}", what, text.size(), limits.max_bytes);
  std::string cleaned;
  if (limits.allow_non_finite) {
    cleaned = without_non_finite(text);
    text = cleaned;
  }
  boost::json::parse_options options;
  options.max_depth = limits.max_depth;
  try {
    boost::json::stream_parser parser({}, options);
    boost::json::error_code error;
    const std::size_t used = parser.write_some(text.data(), text.size(), error);
    if (!error) parser.finish(error);
    if (error) return fail(ErrorCode::kCorrupt, "{}: not valid JSON near byte {}: {}", what, used, error.message());
    const std::size_t rest = text.find_first_not_of(" \t\r\n", used);
    if (rest != std::string_view::npos) return fail(ErrorCode::kCorrupt, "{}: extra text after the JSON value at byte {}", what, rest);
    return parser.release();
  } catch (const std::exception& e) {
    return fail(ErrorCode::kExhausted, "{}: cannot hold this JSON: {}", what, e.what());
  }
}

const Value* find(const Object& object, std::string_view key) {
  const Value* value = object.if_contains(key);
  return value && !value->is_null() ? value : nullptr;
}

Result<const Object*> as_object(const Value& value, std::string_view what) {
  if (!value.is_object()) return wrong_kind(what, "an object", value);
  return &value.get_object();
}

Result<std::int64_t> to_int(const Value& value, std::string_view what) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) {  // how the parser holds what is above all int64, but programs hold small numbers so as well
    if (std::in_range<std::int64_t>(value.get_uint64())) return static_cast<std::int64_t>(value.get_uint64());
    return fail(ErrorCode::kCorrupt, "'{}' is too large: {}", what, value.get_uint64());
  }
  if (!value.is_double()) return wrong_kind(what, "an integer", value);
  const double d = value.get_double();
  if (!(std::abs(d) < 9.0e15) || d != std::floor(d)) return fail(ErrorCode::kCorrupt, "'{}' should be an integer but is {}", what, d);
  return static_cast<std::int64_t>(d);
}

Result<double> to_double(const Value& value, std::string_view what) {
  if (value.is_double()) return value.get_double();
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return wrong_kind(what, "a number", value);
}

Result<std::int64_t> get_int(const Object& object, std::string_view key) { return required(object, key, to_int); }
Result<double> get_double(const Object& object, std::string_view key) { return required(object, key, to_double); }
Result<bool> get_bool(const Object& object, std::string_view key) { return required(object, key, to_bool); }
Result<std::string> get_string(const Object& object, std::string_view key) { return required(object, key, to_string); }

Result<std::int64_t> get_int_or(const Object& object, std::string_view key, std::int64_t fallback) {
  return optional<std::int64_t>(object, key, fallback, to_int);
}
Result<double> get_double_or(const Object& object, std::string_view key, double fallback) {
  return optional<double>(object, key, fallback, to_double);
}
Result<bool> get_bool_or(const Object& object, std::string_view key, bool fallback) {
  return optional<bool>(object, key, fallback, to_bool);
}
Result<std::string> get_string_or(const Object& object, std::string_view key, std::string fallback) {
  return optional<std::string>(object, key, std::move(fallback), to_string);
}

}  // namespace weir::json
