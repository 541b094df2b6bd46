// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_encoder.h"

#include <utility>

#include "formats/tensor_layout.h"

namespace weir::formats {
namespace {

std::unexpected<Error> misfit(GgufType type) {
  return fail(ErrorCode::kInvalidArgument, "the value does not fit the type {}", gguf_type_name(type));
}

template <class Narrow, class Wide>
Status append_number(std::string& out, GgufType type, Wide value) {
  if constexpr (std::is_integral_v<Narrow>)
    if (!std::in_range<Narrow>(value)) return misfit(type);
  append_raw(out, static_cast<Narrow>(value));
  return {};
}

Status append_element(std::string& out, GgufType type, std::int64_t value) {
  switch (type) {
    case GgufType::kI8: return append_number<std::int8_t>(out, type, value);
    case GgufType::kI16: return append_number<std::int16_t>(out, type, value);
    case GgufType::kI32: return append_number<std::int32_t>(out, type, value);
    case GgufType::kI64: return append_number<std::int64_t>(out, type, value);
    default: return misfit(type);
  }
}

Status append_element(std::string& out, GgufType type, std::uint64_t value) {
  switch (type) {
    case GgufType::kU8: return append_number<std::uint8_t>(out, type, value);
    case GgufType::kU16: return append_number<std::uint16_t>(out, type, value);
    case GgufType::kU32: return append_number<std::uint32_t>(out, type, value);
    case GgufType::kU64: return append_number<std::uint64_t>(out, type, value);
    default: return misfit(type);
  }
}

Status append_element(std::string& out, GgufType type, double value) {
  switch (type) {
    case GgufType::kF32: return append_number<float>(out, type, value);
    case GgufType::kF64: return append_number<double>(out, type, value);
    default: return misfit(type);
  }
}

Status append_element(std::string& out, GgufType type, bool value) {
  if (type != GgufType::kBool) return misfit(type);
  append_raw(out, static_cast<std::uint8_t>(value));
  return {};
}

Status append_element(std::string& out, GgufType type, const std::string& value) {
  if (type != GgufType::kString) return misfit(type);
  append_string(out, value);
  return {};
}

Status append_array(std::string& out, GgufType element, const GgufArray& array);

Status append_items(std::string& out, GgufType element, const GgufNestedArray& nested) {
  if (element != GgufType::kArray) return misfit(element);
  for (const GgufInnerArray& inner : nested.items) WEIR_TRY(append_array(out, inner.element, inner.values));
  return {};
}

template <class T>
Status append_items(std::string& out, GgufType element, const std::vector<T>& values) {
  for (const auto& value : values) {
    if constexpr (std::is_same_v<T, bool>) {
      WEIR_TRY(append_element(out, element, static_cast<bool>(value)));
    } else {
      WEIR_TRY(append_element(out, element, value));
    }
  }
  return {};
}

Status append_array(std::string& out, GgufType element, const GgufArray& array) {
  append_raw(out, static_cast<std::uint32_t>(element));
  append_raw(out, static_cast<std::uint64_t>(gguf_array_size(array)));
  return std::visit([&](const auto& values) { return append_items(out, element, values); }, array);
}

Status append_value(std::string& out, const GgufEntry& entry) {
  return std::visit(
      [&](const auto& value) -> Status {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, GgufArray>) {
          if (entry.type != GgufType::kArray) return misfit(entry.type);
          return append_array(out, entry.element_type, value);
        } else {
          return append_element(out, entry.type, value);
        }
      },
      entry.value);
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
  append_raw(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}

Status append_entry(std::string& out, const GgufEntry& entry) {
  append_string(out, entry.key);
  append_raw(out, static_cast<std::uint32_t>(entry.type));
  auto appended = append_value(out, entry);
  if (!appended) return std::unexpected(std::move(appended).error().with_context("key " + in_quotes(entry.key)));
  return {};
}

}  // namespace weir::formats
