// SPDX-License-Identifier: Apache-2.0
// The validator of schema_validator_test.h. Expressions by std::wregex, whose dialect is JavaScript's.
#include "grammar/schema_validator_test.h"

#include <algorithm>
#include <boost/json/value.hpp>
#include <cmath>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace weir::grammar::testing {
namespace {

using json::Array;
using json::Object;
using json::Value;

// UTF-8 to code points, which a wchar_t holds on Linux.
std::wstring wide(std::string_view text) {
  std::wstring out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80) {
      out.push_back(static_cast<wchar_t>(byte < 0x80 ? byte : byte & (byte < 0xE0 ? 0x1F : byte < 0xF0 ? 0x0F : 0x07)));
    } else if (!out.empty()) {
      out.back() = static_cast<wchar_t>((out.back() << 6) | (byte & 0x3F));
    }
  }
  return out;
}

bool search(const std::string& text, std::string_view expression) {
  return std::regex_search(wide(text), std::wregex(wide(expression), std::regex::ECMAScript));
}

bool is_real_day(int year, int month, int day) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day <= kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

bool is_date(const std::string& text) {
  if (!search(text, "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")) return false;
  return is_real_day(std::stoi(text.substr(0, 4)), std::stoi(text.substr(5, 2)), std::stoi(text.substr(8, 2)));
}

bool is_time(const std::string& text) {
  return search(text, "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$");
}

bool has_format(const std::string& text, std::string_view format) {
  if (format == "date") return is_date(text);
  if (format == "time") return is_time(text);
  if (format == "date-time") return text.size() > 11 && text[10] == 'T' && is_date(text.substr(0, 10)) && is_time(text.substr(11));
  if (format == "email") return search(text, "^[^@\\s]+@[^@\\s]+$");
  if (format == "uuid") return search(text, "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$");
  if (format == "ipv4") return search(text, "^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\\.(?!$)|$)){4}$");
  return false;
}

bool is_number(const Value& v) { return v.is_int64() || v.is_uint64() || v.is_double(); }
double number(const Value& v) { return v.to_number<double>(); }
bool is_whole(const Value& v) { return v.is_int64() || v.is_uint64() || (v.is_double() && std::floor(v.get_double()) == v.get_double()); }

bool equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return number(a) == number(b);
  if (a.kind() != b.kind()) return false;
  if (a.is_array()) {
    return std::equal(a.get_array().begin(), a.get_array().end(), b.get_array().begin(), b.get_array().end(), equal);
  }
  if (!a.is_object()) return a == b;
  const auto& other = b.get_object();
  return a.get_object().size() == other.size() && std::ranges::all_of(a.get_object(), [&](const auto& member) {
           return other.contains(member.key()) && equal(member.value(), other.at(member.key()));
         });
}

bool has_type(const Value& v, std::string_view type) {
  if (type == "null") return v.is_null();
  if (type == "boolean") return v.is_bool();
  if (type == "integer") return is_number(v) && is_whole(v);
  if (type == "number") return is_number(v);
  if (type == "string") return v.is_string();
  if (type == "array") return v.is_array();
  return type == "object" && v.is_object();
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

struct Validator {
  const Value& root;

  bool valid(const Value& v, const Value& schema) const {
    if (schema.is_bool()) return schema.get_bool();
    const Object& s = schema.get_object();
    return general(v, s) && combined(v, s) && (!is_number(v) || numeric(number(v), s)) &&
           (!v.is_string() || textual(std::string(v.get_string()), s)) && (!v.is_array() || listed(v.get_array(), s)) &&
           (!v.is_object() || mapped(v.get_object(), s));
  }

  bool general(const Value& v, const Object& s) const {
    if (const Value* type = s.if_contains("type")) {
      const auto is = [&](const Value& name) { return has_type(v, name.get_string()); };
      if (type->is_array() ? !std::ranges::any_of(type->get_array(), is) : !is(*type)) return false;
    }
    if (const Value* list = s.if_contains("enum")) {
      if (!std::ranges::any_of(list->get_array(), [&](const Value& one) { return equal(v, one); })) return false;
    }
    const Value* constant = s.if_contains("const");
    return !constant || equal(v, *constant);
  }

  bool combined(const Value& v, const Object& s) const {
    const auto holds = [&](const Value& part) { return valid(v, part); };
    const Value* part = nullptr;
    if ((part = s.if_contains("$ref")) && !valid(v, resolve(part->get_string()))) return false;
    if ((part = s.if_contains("allOf")) && !std::ranges::all_of(part->get_array(), holds)) return false;
    if ((part = s.if_contains("anyOf")) && !std::ranges::any_of(part->get_array(), holds)) return false;
    if ((part = s.if_contains("oneOf")) && std::ranges::count_if(part->get_array(), holds) != 1) return false;
    if ((part = s.if_contains("not")) && holds(*part)) return false;
    if ((part = s.if_contains("if"))) {
      const Value* branch = s.if_contains(holds(*part) ? "then" : "else");
      if (branch && !holds(*branch)) return false;
    }
    return true;
  }

  const Value& resolve(std::string_view reference) const { return reference == "#" ? root : root.at_pointer(reference.substr(1)); }

  static bool numeric(double v, const Object& s) {
    const Value* bound = nullptr;
    if ((bound = s.if_contains("minimum")) && v < number(*bound)) return false;
    if ((bound = s.if_contains("maximum")) && v > number(*bound)) return false;
    if ((bound = s.if_contains("exclusiveMinimum")) && v <= number(*bound)) return false;
    if ((bound = s.if_contains("exclusiveMaximum")) && v >= number(*bound)) return false;
    return !(bound = s.if_contains("multipleOf")) || std::fmod(v, number(*bound)) == 0;
  }

  static bool textual(const std::string& v, const Object& s) {
    const Value* part = nullptr;
    if ((part = s.if_contains("minLength")) && characters(v) < part->to_number<std::size_t>()) return false;
    if ((part = s.if_contains("maxLength")) && characters(v) > part->to_number<std::size_t>()) return false;
    if ((part = s.if_contains("pattern")) && !search(v, part->get_string())) return false;
    return !(part = s.if_contains("format")) || has_format(v, part->get_string());
  }

  bool listed(const Array& v, const Object& s) const {
    const Value* part = nullptr;
    if ((part = s.if_contains("minItems")) && v.size() < part->to_number<std::size_t>()) return false;
    if ((part = s.if_contains("maxItems")) && v.size() > part->to_number<std::size_t>()) return false;
    std::size_t at = 0;
    if ((part = s.if_contains("prefixItems"))) {
      for (; at < std::min(v.size(), part->get_array().size()); ++at) {
        if (!valid(v[at], part->get_array()[at])) return false;
      }
    }
    if ((part = s.if_contains("items"))) {
      for (; at < v.size(); ++at) {
        if (!valid(v[at], *part)) return false;
      }
    }
    if ((part = s.if_contains("contains")) && std::ranges::none_of(v, [&](const Value& item) { return valid(item, *part); })) return false;
    if ((part = s.if_contains("uniqueItems")) && part->get_bool()) {
      for (std::size_t i = 0; i < v.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          if (equal(v[i], v[j])) return false;
        }
      }
    }
    return true;
  }

  bool mapped(const Object& v, const Object& s) const {
    const Value* part = nullptr;
    if ((part = s.if_contains("minProperties")) && v.size() < part->to_number<std::size_t>()) return false;
    if ((part = s.if_contains("maxProperties")) && v.size() > part->to_number<std::size_t>()) return false;
    if ((part = s.if_contains("required"))) {
      if (!std::ranges::all_of(part->get_array(), [&](const Value& name) { return v.contains(name.get_string()); })) return false;
    }
    if ((part = s.if_contains("propertyNames"))) {
      if (!std::ranges::all_of(v, [&](const auto& member) { return valid(Value(member.key()), *part); })) return false;
    }
    return std::ranges::all_of(v, [&](const auto& member) { return valid_member(member.key(), member.value(), s); }) && dependent(v, s);
  }

  bool valid_member(std::string_view name, const Value& v, const Object& s) const {
    bool named = false;
    const Value* part = nullptr;
    if ((part = s.if_contains("properties")) && (part = part->get_object().if_contains(name))) {
      named = true;
      if (!valid(v, *part)) return false;
    }
    if ((part = s.if_contains("patternProperties"))) {
      for (const auto& member : part->get_object()) {
        if (!search(std::string(name), member.key())) continue;
        named = true;
        if (!valid(v, member.value())) return false;
      }
    }
    return named || !(part = s.if_contains("additionalProperties")) || valid(v, *part);
  }

  bool dependent(const Object& v, const Object& s) const {
    const Value* rules = s.if_contains("dependentRequired");
    if (!rules) return true;
    return std::ranges::all_of(rules->get_object(), [&](const auto& rule) {
      return !v.contains(rule.key()) ||
             std::ranges::all_of(rule.value().get_array(), [&](const Value& n) { return v.contains(n.get_string()); });
    });
  }
};

}  // namespace

bool is_valid(const json::Value& value, const json::Value& schema, const json::Value& root) { return Validator{root}.valid(value, schema); }

}  // namespace weir::grammar::testing
