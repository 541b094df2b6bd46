// SPDX-License-Identifier: Apache-2.0
#include "formats/json_duplicates.h"

#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <unordered_set>
#include <vector>

namespace weir::formats {
namespace {

// Called by Boost.JSON's streaming parser; keeps the keys of the open objects and ignores everything else.
struct KeyCollector {
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;

  using Code = boost::json::error_code;
  std::vector<std::unordered_set<std::string>> open;
  std::string key;
  std::optional<std::string> duplicate;

  bool on_object_begin(Code&) {
    open.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, Code&) {
    open.pop_back();
    return true;
  }
  bool on_key_part(std::string_view part, std::size_t, Code&) {
    key += part;
    return true;
  }
  bool on_key(std::string_view part, std::size_t, Code& code) {
    key += part;
    if (!open.back().insert(key).second) {
      duplicate = std::move(key);
      code = boost::json::error::syntax;
      return false;
    }
    key.clear();
    return true;
  }

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t, Code&) { return true; }
  bool on_string_part(std::string_view, std::size_t, Code&) { return true; }
  bool on_string(std::string_view, std::size_t, Code&) { return true; }
  bool on_number_part(std::string_view, Code&) { return true; }
  bool on_int64(std::int64_t, std::string_view, Code&) { return true; }
  bool on_uint64(std::uint64_t, std::string_view, Code&) { return true; }
  bool on_double(double, std::string_view, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(std::string_view, Code&) { return true; }
  bool on_comment(std::string_view, Code&) { return true; }
};

}  // namespace

std::optional<std::string> find_duplicate_key(std::string_view json) {
  boost::json::basic_parser<KeyCollector> parser{boost::json::parse_options{}};
  boost::json::error_code error;
  parser.write_some(false, json.data(), json.size(), error);
  return std::move(parser.handler().duplicate);
}

}  // namespace weir::formats
