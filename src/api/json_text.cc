// SPDX-License-Identifier: Apache-2.0
#include "api/json_text.h"

#include <fmt/core.h>

#include <cmath>
#include <iterator>
#include <limits>

#include "tokenizer/utf8.h"

namespace weir::api {
namespace {

template <class T>
T finite(T value) {
  if (std::isnan(value)) return 0;
  if (std::isinf(value)) return value > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
  return value;
}

// With a point where it is a whole number: some clients tell floating point from integers by it.
template <class T>
void append_number(std::string& out, T value) {
  const std::size_t from = out.size();
  out += fmt::format("{}", finite(value));
  if (out.find_first_of(".e", from) == std::string::npos) out += ".0";
}

void append_escaped(std::string& out, std::string_view valid) {
  std::size_t from = 0;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const char c = valid[i];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.append(valid, from, i - from);
    from = i + 1;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  out.append(valid, from, valid.size() - from);
}

}  // namespace

void JsonText::separate() {
  if (comma_) out_ += ',';
  comma_ = true;
}

JsonText& JsonText::open(char bracket) {
  separate();
  out_ += bracket;
  comma_ = false;
  return *this;
}

JsonText& JsonText::close(char bracket) {
  out_ += bracket;
  comma_ = true;
  return *this;
}

JsonText& JsonText::key(std::string_view name) {
  text(name);
  out_ += ':';
  comma_ = false;
  return *this;
}

JsonText& JsonText::text(std::string_view value) {
  separate();
  std::string buffer;
  out_ += '"';
  append_escaped(out_, tokenizer::repair_utf8(value, buffer));
  out_ += '"';
  return *this;
}

JsonText& JsonText::integer(std::int64_t value) {
  separate();
  out_ += fmt::format("{}", value);
  return *this;
}

JsonText& JsonText::number(double value) {
  separate();
  append_number(out_, value);
  return *this;
}

JsonText& JsonText::number(float value) {
  separate();
  append_number(out_, value);
  return *this;
}

JsonText& JsonText::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

JsonText& JsonText::value(const json::Value& value) { return raw(boost::json::serialize(value)); }

JsonText& JsonText::ids(std::span<const TokenId> ids) {
  open_array();
  for (const TokenId id : ids) integer(id);
  return close_array();
}

}  // namespace weir::api
