// SPDX-License-Identifier: Apache-2.0
// JSON from outside: parsed with limits, read through getters that return errors naming the key. Boost.JSON beneath.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;

struct ParseLimits {
  std::size_t max_bytes = 256u << 20;
  std::size_t max_depth = 64;
  bool allow_non_finite = false;  // accept NaN and Infinity, as Python writes them
};

// `what` names the source in errors. Duplicate keys: the last one counts, as in Python and JavaScript.
Result<Value> parse(std::string_view text, std::string_view what, const ParseLimits& limits = {});

// The member, or nullptr when absent or null.
const Value* find(const Object& object, std::string_view key);

Result<const Object*> as_object(const Value& value, std::string_view what);

// Required members. Numbers written either as integers or floats are accepted where they are exact.
Result<std::int64_t> get_int(const Object& object, std::string_view key);
Result<double> get_double(const Object& object, std::string_view key);
Result<bool> get_bool(const Object& object, std::string_view key);
Result<std::string> get_string(const Object& object, std::string_view key);

// Optional members: the fallback when absent or null, an error when of another type.
Result<std::int64_t> get_int_or(const Object& object, std::string_view key, std::int64_t fallback);
Result<double> get_double_or(const Object& object, std::string_view key, double fallback);
Result<bool> get_bool_or(const Object& object, std::string_view key, bool fallback);
Result<std::string> get_string_or(const Object& object, std::string_view key, std::string fallback);

// The value as an integer or double, if it is a number that fits.
Result<std::int64_t> to_int(const Value& value, std::string_view what);
Result<double> to_double(const Value& value, std::string_view what);

}  // namespace weir::json
