// SPDX-License-Identifier: Apache-2.0
// Writes JSON straight into a string: answers are made once for each token, so no tree is built for them. Commas are its business;
// brackets and keys are the caller's. What it writes is always valid JSON: text is escaped, bad UTF-8 repaired, numbers are finite.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/json.h"

namespace weir::api {

class JsonText {
 public:
  JsonText() = default;
  explicit JsonText(std::string start) : out_(std::move(start)) {}  // to go on behind a bracket

  JsonText& open_object() { return open('{'); }
  JsonText& close_object() { return close('}'); }
  JsonText& open_array() { return open('['); }
  JsonText& close_array() { return close(']'); }
  JsonText& key(std::string_view name);

  JsonText& text(std::string_view value);
  JsonText& integer(std::int64_t value);
  JsonText& number(double value);  // infinities and not-a-number become the largest numbers and 0
  JsonText& number(float value);   // with the fewest digits that give the same float again
  JsonText& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonText& null() { return raw("null"); }
  JsonText& raw(std::string_view json);  // a value that is JSON already
  JsonText& value(const json::Value& value);
  JsonText& ids(std::span<const TokenId> ids);

  JsonText& member(std::string_view name, std::string_view value) { return key(name).text(value); }
  JsonText& member(std::string_view name, const char* value) { return key(name).text(value); }
  JsonText& member(std::string_view name, std::int64_t value) { return key(name).integer(value); }
  JsonText& member(std::string_view name, std::int32_t value) { return key(name).integer(value); }
  JsonText& member(std::string_view name, double value) { return key(name).number(value); }
  JsonText& member(std::string_view name, bool value) { return key(name).boolean(value); }

  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  JsonText& open(char bracket);
  JsonText& close(char bracket);
  void separate();

  std::string out_;
  bool comma_ = false;  // the next value or key needs one before it
};

}  // namespace weir::api
