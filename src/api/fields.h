// SPDX-License-Identifier: Apache-2.0
// A strict reader of JSON requests, driven by tables. One table for each kind of object says what its fields are, what they may hold and
// where they go; from it come the parser, its errors ("messages[2].content: …") and the schema of the OpenAPI document, so that the
// three cannot disagree. A field that is not in the table is an error: ignoring it might change the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/api_error.h"
#include "base/json.h"

namespace weir::api {

using ApiStatus = std::expected<void, ApiError>;

// The place of a value within a request, on the stack of whoever reads it: text is made only for errors.
class Path {
 public:
  Path() = default;
  Path(const Path& parent, std::string_view key) : parent_(&parent), key_(key) {}
  Path(const Path& parent, std::size_t index) : parent_(&parent), index_(index), is_index_(true) {}
  std::string text() const;  // "messages[2].content[0].type"; empty for the request itself

 private:
  const Path* parent_ = nullptr;
  std::string_view key_ = {};
  std::size_t index_ = 0;
  bool is_index_ = false;
};

// The body of a request: one JSON object, UTF-8, no key twice, of bounded depth.
ApiResult<json::Object> parse_body(std::string_view body);

// 400 at a place.
std::unexpected<ApiError> refuse(const Path& path, std::string message, std::string code = "invalid_value");
// "… should be {wanted}, but is {what it is}".
std::unexpected<ApiError> wrong_type(const Path& path, std::string_view wanted, const json::Value& value);
std::string_view kind_name(const json::Value& value);  // "an array", …

// Single values; limits are inclusive.
struct Range {
  double low = std::numeric_limits<double>::lowest(), high = std::numeric_limits<double>::max();
  bool above_low = false;  // low itself is not allowed
};
struct IntRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = std::numeric_limits<std::int64_t>::max();
};
ApiResult<double> read_number(const json::Value& value, const Path& path, const Range& range = {});
ApiResult<std::int64_t> read_integer(const json::Value& value, const Path& path, const IntRange& range = {});
ApiResult<bool> read_bool(const json::Value& value, const Path& path);
ApiResult<std::string> read_text(const json::Value& value, const Path& path);
ApiResult<const json::Object*> read_object(const json::Value& value, const Path& path);
ApiResult<const json::Array*> read_array(const json::Value& value, const Path& path);
ApiResult<std::vector<std::string>> read_texts(const json::Value& value, const Path& path, std::size_t most);
// The one of `names`; errors list them.
ApiResult<std::string_view> read_name(const json::Value& value, const Path& path, std::initializer_list<std::string_view> names);
// A member that must be there.
ApiResult<const json::Value*> require(const json::Object& object, std::string_view key, const Path& path);

// A JSON schema from its text, which is ours: a mistake in it ends the program.
json::Value schema(std::string_view text);
json::Object number_schema(const Range& range);
json::Object integer_schema(const IntRange& range);

// What is common to the tables of all types: reads into a void*.
class FieldTable {
 public:
  using Read = std::function<ApiStatus(const json::Value&, const Path&, void*)>;

  ApiStatus read(const json::Object& object, const Path& path, void* into) const;
  // {"type": "object", "properties": …, "required": …, "additionalProperties": false}. Optional fields may be null.
  json::Object schema() const;

 protected:
  struct Field {
    std::string name;
    json::Value schema;
    Read read;
    bool required = false;
  };
  Field& add(std::string_view name, json::Value schema, Read read);
  const Field* find(std::string_view name) const;
  std::unexpected<ApiError> unknown(std::string_view name, const Path& path) const;

  std::vector<Field> fields_;
};

// The table of one type. Setters are plain functions (lambdas without captures).
//   fields.number("top_p", {0, 1, true}, [](Draft& d, double v) { d.top_p = v; });
template <class T>
class Fields : public FieldTable {
 public:
  template <class V>
  using Set = void (*)(T&, V);
  using ReadInto = ApiStatus (*)(const json::Value&, const Path&, T&);

  Fields& number(std::string_view name, const Range& range, Set<double> set) {
    return put<double>(name, number_schema(range), set, [range](auto& value, auto& path) { return read_number(value, path, range); });
  }
  Fields& integer(std::string_view name, const IntRange& range, Set<std::int64_t> set) {
    return put<std::int64_t>(name, integer_schema(range), set,
                             [range](auto& value, auto& path) { return read_integer(value, path, range); });
  }
  Fields& boolean(std::string_view name, Set<bool> set) { return put<bool>(name, json::Object{{"type", "boolean"}}, set, read_bool); }
  Fields& text(std::string_view name, Set<std::string> set) {
    return put<std::string>(name, json::Object{{"type", "string"}}, set, read_text);
  }
  // Any value of the schema; `read` checks it.
  Fields& value(std::string_view name, json::Value schema, ReadInto read) {
    add(name, std::move(schema),
        [read](const json::Value& value, const Path& path, void* into) { return read(value, path, *static_cast<T*>(into)); });
    return *this;
  }
  // Another object with a table of its own, within T; the table must live as long as this one.
  template <class U>
  Fields& object(std::string_view name, const Fields<U>& table, U& (*get)(T&)) {
    add(name, table.schema(), [&table, get](const json::Value& value, const Path& path, void* into) -> ApiStatus {
      return table.read(value, path, get(*static_cast<T*>(into)));
    });
    return *this;
  }
  // The field added last must be there, and not null.
  Fields& required() {
    fields_.back().required = true;
    return *this;
  }
  Fields& note(std::string_view text) {
    fields_.back().schema.as_object()["description"] = text;
    return *this;
  }
  // Fields that change nothing in the answer: accepted with any value.
  Fields& ignore(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      add(name, json::Object{{"description", "Accepted and ignored: it does not change the answer."}},
          [](const json::Value&, const Path&, void*) -> ApiStatus { return {}; });
    return *this;
  }
  // A field that clients send with its default, which is all that there is.
  Fields& only(std::string_view name, json::Value value, std::string_view why) {
    json::Object schema{{"enum", json::Array{value}}, {"description", why}};
    add(name, std::move(schema),
        [value = std::move(value), why = std::string(why)](const json::Value& given, const Path& path, void*) -> ApiStatus {
          if (given == value) return {};
          return refuse(path, why, "unsupported_parameter");
        });
    return *this;
  }

  ApiStatus read(const json::Object& object, const Path& path, T& into) const { return FieldTable::read(object, path, &into); }
  ApiStatus read(const json::Value& value, const Path& path, T& into) const {
    auto object = read_object(value, path);
    if (!object) return std::unexpected(std::move(object).error());
    return FieldTable::read(**object, path, &into);
  }

 private:
  template <class V, class Reader>
  Fields& put(std::string_view name, json::Object schema, Set<V> set, Reader reader) {
    add(name, std::move(schema), [set, reader](const json::Value& value, const Path& path, void* into) -> ApiStatus {
      auto got = reader(value, path);
      if (!got) return std::unexpected(std::move(got).error());
      set(*static_cast<T*>(into), std::move(*got));
      return {};
    });
    return *this;
  }
};

// The whole of a request: body → T.
template <class T>
ApiStatus read_body(std::string_view body, const Fields<T>& fields, T& into) {
  auto object = parse_body(body);
  if (!object) return std::unexpected(std::move(object).error());
  return fields.read(*object, Path(), into);
}

}  // namespace weir::api
