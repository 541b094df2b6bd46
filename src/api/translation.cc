// SPDX-License-Identifier: Apache-2.0
#include "api/translation.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "api/openai_tools.h"
#include "api/text_fields.h"
#include "tokenizer/utf8.h"

namespace weir::api {
namespace {

constexpr std::size_t kMaxShown = 40;                             // bytes
constexpr std::size_t kMaxStops = 64, kMaxStopCharacters = 1024;  // as sampling::validate

ApiStatus check_stop(std::string_view text, const Path& path) {
  if (text.empty()) return refuse(path, "is empty, which would end every answer at once");
  if (count_characters(text) > kMaxStopCharacters)
    return refuse(path, fmt::format("has more than {} characters", kMaxStopCharacters), "too_long");
  return {};
}

}  // namespace

std::string shown_word(std::string_view text) {
  std::size_t end = std::min(text.size(), kMaxShown);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  std::string buffer;
  std::string shown(tokenizer::repair_utf8(text.substr(0, end), buffer));
  std::replace_if(shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return shown;
}

ApiStatus read_stop_texts(const json::Value& value, const Path& path, std::vector<std::string>& stops) {
  if (value.is_string()) {
    stops.assign(1, std::string(value.get_string()));
    return check_stop(stops.front(), path);
  }
  WEIR_ASSIGN(stops, read_texts(value, path, kMaxStops));
  for (std::size_t i = 0; i < stops.size(); ++i) WEIR_TRY(check_stop(stops[i], Path(path, i)));
  return {};
}

json::Value stop_texts_schema() {
  return schema(R"({"anyOf": [{"type": "string", "minLength": 1, "maxLength": 1024},
    {"type": "array", "maxItems": 64, "items": {"type": "string", "minLength": 1, "maxLength": 1024}}]})");
}

json::Value tool_name_schema() { return schema(R"({"type": "string", "pattern": "^[A-Za-z0-9_.:/-]{1,128}$"})"); }

ApiStatus read_tool_name(const json::Value& value, const Path& path, std::string& name) {
  WEIR_ASSIGN(name, read_text(value, path));
  return check_tool_name(name, path);
}

ApiStatus read_tool_list(const json::Value& value, const Path& path, ReadTool read, std::vector<Tool>& tools) {
  WEIR_ASSIGN(const json::Array* array, read_array(value, path));
  if (array->size() > kMaxTools) return refuse(path, fmt::format("has {} entries; {} are allowed", array->size(), kMaxTools), "too_many");
  for (std::size_t i = 0; i < array->size(); ++i) {
    const Path place(path, i);
    Tool tool;
    WEIR_ASSIGN(const json::Object* object, read_object((*array)[i], place));
    WEIR_TRY(read(*object, place, tool));
    if (has_tool(tools, tool.name)) return refuse(place, fmt::format("has the name '{}' of another tool", tool.name), "duplicate_tool");
    tool.as_given = tool_for_template(tool);
    tools.push_back(std::move(tool));
  }
  return {};
}

bool has_tool(const std::vector<Tool>& tools, std::string_view name) {
  return std::any_of(tools.begin(), tools.end(), [&](const Tool& tool) { return tool.name == name; });
}

}  // namespace weir::api
