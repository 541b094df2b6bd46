// SPDX-License-Identifier: Apache-2.0
// For tests only: makes ZIP files, and wheels that pip accepts.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"

namespace weir::store {

struct ZipInput {
  std::string name;
  std::string content;
  bool deflated = true;
};

inline std::string deflate_raw(std::string_view content) {
  z_stream stream{};
  ::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(::deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

inline std::string zip_of(const std::vector<ZipInput>& inputs) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  std::string zip, directory;
  for (const ZipInput& input : inputs) {
    const std::string packed = input.deflated ? deflate_raw(input.content) : input.content;
    const uLong crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(input.content.data()), input.content.size());
    const std::string facts = number(20, 2) + number(0, 2) + number(input.deflated ? 8 : 0, 2) + number(0x00210000, 4) + number(crc, 4) +
                              number(packed.size(), 4) + number(input.content.size(), 4) + number(input.name.size(), 2) + number(0, 2);
    directory += "PK\x01\x02" + number(20, 2) + facts + number(0, 2) + number(0, 2) + number(0, 2) + number(0, 4) + number(zip.size(), 4) +
                 input.name;
    zip += "PK\x03\x04" + facts + input.name + packed;
  }
  const std::uint64_t start = zip.size();
  zip += directory + "PK\x05\x06" + number(0, 4) + number(inputs.size(), 2) + number(inputs.size(), 2) + number(directory.size(), 4) +
         number(start, 4) + number(0, 2);
  return zip;
}

// A wheel NAME-1.0 of these files.
inline std::string wheel_of(const std::string& name, std::vector<ZipInput> files) {
  const std::string info = name + "-1.0.dist-info/";
  files.push_back({info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"});
  files.push_back({info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"});
  files.push_back({info + "RECORD", ""});
  return zip_of(files);
}

}  // namespace weir::store
