// SPDX-License-Identifier: Apache-2.0
#include "store/inspect.h"

#include <type_traits>

#include "formats/gguf_reader.h"
#include "formats/hf_folder.h"
#include "store/names.h"

namespace weir::store {
namespace {

constexpr std::size_t kShownElements = 6;
constexpr std::size_t kWholeArray = 64;
constexpr std::size_t kShownText = 100;

template <class T>
json::Value json_of(const T& value) {
  return json::Value(value);
}
json::Value json_of(const std::string& value) { return json::Value(value); }

std::string text_of(const json::Value& value) {
  if (value.is_string()) return printable(value.get_string(), kShownText);
  if (value.is_double()) return fmt::format("{:.7g}", value.get_double());  // as exact as the 32-bit number in the file
  return printable(boost::json::serialize(value), kShownText);
}

template <class Array>
MetadataItem array_item(const Array& array) {
  MetadataItem item;
  const std::size_t shown = array.size() <= kWholeArray ? array.size() : kShownElements;
  json::Array first;
  for (std::size_t i = 0; i < shown; ++i) first.push_back(json_of(static_cast<typename Array::value_type>(array[i])));
  for (std::size_t i = 0; i < shown && i < kShownElements; ++i) item.text += (i ? ", " : "") + text_of(first[i]);
  if (array.size() > kShownElements) item.text += fmt::format(", … ({} in all)", array.size());
  if (array.size() <= kWholeArray)
    item.value = std::move(first);
  else
    item.value = json::Object{{"count", array.size()}, {"first", std::move(first)}};
  return item;
}

MetadataItem array_item(const formats::GgufNestedArray& array) {
  MetadataItem item;
  item.text = fmt::format("{} arrays", array.items.size());
  item.value = json::Object{{"count", array.items.size()}};
  return item;
}

MetadataItem item_of(const formats::GgufEntry& entry) {
  MetadataItem item = std::visit(
      [](const auto& value) -> MetadataItem {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, formats::GgufArray>) {
          return std::visit([](const auto& array) { return array_item(array); }, value);
        } else {
          MetadataItem scalar;
          scalar.value = json_of(value);
          scalar.text = text_of(scalar.value);
          return scalar;
        }
      },
      entry.value);
  item.key = entry.key;
  item.type = entry.type_name;
  return item;
}

const char* json_type(const json::Value& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  if (value.is_number()) return "number";
  if (value.is_array()) return "array";
  return value.is_object() ? "object" : "null";
}

Result<ModelDescription> inspect_gguf(const std::filesystem::path& path) {
  WEIR_ASSIGN(const formats::GgufFile file, formats::GgufFile::open(path));
  ModelDescription description;
  description.format = fmt::format("GGUF v{}", file.version());
  WEIR_ASSIGN(description.architecture, file.get_string_or("general.architecture", "unknown"));
  for (const formats::GgufEntry& entry : file.metadata()) description.metadata.push_back(item_of(entry));
  description.index = file.index();
  return description;
}

Result<ModelDescription> inspect_folder(const std::filesystem::path& path) {
  WEIR_ASSIGN(formats::HfFolder folder, formats::HfFolder::open(path));
  ModelDescription description;
  description.format = "safetensors";
  description.architecture = "unknown";
  if (const json::Value* type = json::find(folder.config, "model_type"); type && type->is_string())
    description.architecture = type->get_string();
  for (const auto& member : folder.config)
    description.metadata.push_back(
        {.key = std::string(member.key()), .type = json_type(member.value()), .text = text_of(member.value()), .value = member.value()});
  description.index = std::move(folder.index);
  return description;
}

}  // namespace

Result<ModelDescription> inspect_model(const std::filesystem::path& path) {
  Result<ModelDescription> description = formats::HfFolder::looks_like(path) ? inspect_folder(path) : inspect_gguf(path);
  if (!description) return description;
  description->path = path;
  description->architecture = printable(description->architecture);
  for (const auto& file : description->index.files()) description->file_bytes += file->bytes().size();
  description->summary = formats::summarize(description->index);
  return description;
}

}  // namespace weir::store
