// SPDX-License-Identifier: Apache-2.0
// Metadata values as bytes of a GGUF file: the inverse of gguf_parser. Internal to this folder.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/gguf_value.h"

namespace weir::formats {

template <class T>
void append_raw(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}
void append_string(std::string& out, std::string_view text);

// Key, type and value. kInvalidArgument when the value is not one of its type.
Status append_entry(std::string& out, const GgufEntry& entry);

}  // namespace weir::formats
