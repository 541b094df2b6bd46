// SPDX-License-Identifier: Apache-2.0
// Broken and hostile GGUF files: each must be refused with an error that names the entry, never a crash.
#include <gtest/gtest.h>

#include "formats/gguf_reader.h"
#include "formats/gguf_test_bytes.h"

namespace weir::formats {
namespace {

// Two entries and two tensors of 16 and 36 bytes, at 0 and 32.
GgufParts valid() {
  return {.entries = {u32_entry("a.number", 7), array_entry("a.list", 8, 2, str("one") + str("two"))},
          .tensors = {tensor("first", {2, 2}, 0, 0), tensor("second", {64}, 2, 32)},
          .data = 32 + 36};
}

struct Case {
  const char* name;
  std::string bytes;
  ErrorCode code;
  const char* message;  // a part of it
};

GgufParts with_entry(const std::string& extra) {
  GgufParts parts = valid();
  parts.entries.push_back(extra);
  return parts;
}

GgufParts with_tensor(const std::string& extra) {
  GgufParts parts = valid();
  parts.tensors.push_back(extra);
  parts.data = 256;
  return parts;
}

std::string nested(int depth) {
  std::string value;
  for (int i = 0; i < depth; ++i) value += u32(9) + u64(1);
  return entry("deep", 9, value + u32(0) + u64(0));
}

GgufParts with_version(std::uint32_t version) {
  GgufParts parts = valid();
  parts.version = version;
  return parts;
}

std::vector<Case> header_cases() {
  const auto corrupt = ErrorCode::kCorrupt, unsupported = ErrorCode::kUnsupported;
  return {
      {"empty", "", corrupt, "0 bytes"},
      {"other file", std::string(64, 'x'), corrupt, "not a GGUF file"},
      {"before GGUF", "tjgg" + std::string(64, 'x'), corrupt, "before GGUF"},
      {"LFS pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00", corrupt, "git lfs pull"},
      {"version 1", with_version(1).bytes(), unsupported, "version 1"},
      {"version 4", with_version(4).bytes(), unsupported, "version 4"},
      {"big endian", with_version(0x03000000).bytes(), unsupported, "big-endian"},
      {"tensor count beyond the file", valid().bytes(1000, 2), corrupt, "tensor count 1000"},
      {"entry count beyond the file", valid().bytes(2, 1000), corrupt, "metadata count 1000"},
      {"tensor count of 2^64-1", valid().bytes(~0ull, 2), corrupt, "tensor count 18446744073709551615"},
      {"entry count of 2^63", valid().bytes(2, 1ull << 63), corrupt, "metadata count 9223372036854775808"},
  };
}

std::vector<Case> metadata_cases() {
  const auto corrupt = ErrorCode::kCorrupt, unsupported = ErrorCode::kUnsupported;
  return {
      {"repeated key", with_entry(u32_entry("a.number", 8)).bytes(), corrupt, "'a.number' occurs twice"},
      {"empty key", with_entry(u32_entry("", 8)).bytes(), corrupt, "entry 3 has 0 bytes"},
      {"huge key", with_entry(u64(1ull << 62) + "key").bytes(), corrupt, "entry 3"},
      {"unknown type", with_entry(entry("odd", 13, u64(0))).bytes(), corrupt, "'odd' has the unknown type 13"},
      {"unknown array type", with_entry(array_entry("odd", 77, 1, u64(0))).bytes(), corrupt, "'odd' has the unknown type 77"},
      {"huge string", with_entry(entry("text", 8, u64(~0ull) + "text")).bytes(), corrupt, "'text' has a string of"},
      {"huge array", with_entry(array_entry("list", 4, 1ull << 62, u32(1))).bytes(), corrupt, "'list' has 4611686018427387904 elements"},
      {"huge string in an array", with_entry(array_entry("list", 8, 2, str("x") + u64(1ull << 40))).bytes(), corrupt,
       "element 1 of 'list'"},
      {"boolean of 2", with_entry(entry("flag", 7, u8(2))).bytes(), corrupt, "'flag' has the boolean 2"},
      {"boolean of 255 in an array", with_entry(array_entry("flags", 7, 2, u8(1) + u8(255))).bytes(), corrupt,
       "'flags' has the boolean 255"},
      {"arrays too deep", with_entry(nested(60)).bytes(), unsupported, "'deep' nests arrays"},
      {"alignment of 24", with_entry(u32_entry("general.alignment", 24)).bytes(), corrupt, "general.alignment is 24"},
      {"alignment of 0", with_entry(u32_entry("general.alignment", 0)).bytes(), corrupt, "general.alignment is 0"},
      {"alignment of 2^31", with_entry(u32_entry("general.alignment", 1u << 31)).bytes(), corrupt, "general.alignment is 2147483648"},
      {"alignment as text", with_entry(entry("general.alignment", 8, str("32"))).bytes(), corrupt,
       "'general.alignment' should be an integer"},
      {"control characters in a key", with_entry(entry("a\x1b[2J", 99, "")).bytes(), corrupt, "'a\\x1b[2J'"},
  };
}

std::vector<Case> tensor_cases() {
  const auto corrupt = ErrorCode::kCorrupt, unsupported = ErrorCode::kUnsupported;
  return {
      {"repeated tensor", with_tensor(tensor("first", {4}, 0, 96)).bytes(), corrupt, "'first' occurs twice"},
      {"empty name", with_tensor(tensor("", {4}, 0, 96)).bytes(), corrupt, "tensor 3 has 0 bytes"},
      {"no dimension", with_tensor(tensor("third", {}, 0, 96)).bytes(), corrupt, "'third' has 0 dimensions"},
      {"five dimensions", with_tensor(tensor("third", {1, 1, 1, 1, 1}, 0, 96)).bytes(), corrupt, "'third' has 5 dimensions"},
      {"2^32-1 dimensions", with_tensor(str("third") + u32(~0u) + std::string(64, 1)).bytes(), corrupt,
       "'third' has 4294967295 dimensions"},
      {"dimension of 0", with_tensor(tensor("third", {4, 0}, 0, 96)).bytes(), corrupt, "'third' has a dimension of 0"},
      {"negative dimension", with_tensor(tensor("third", {4, ~0ull}, 0, 96)).bytes(), corrupt, "'third' has a dimension of 1844"},
      {"product overflows", with_tensor(tensor("third", {1u << 31, 1u << 31, 4}, 0, 96)).bytes(), corrupt,
       "'third': its dimensions multiply"},
      {"bytes overflow", with_tensor(tensor("third", {1ull << 61}, 0, 96)).bytes(), corrupt, "'third': its dimensions multiply"},
      {"half a block", with_tensor(tensor("third", {48}, 2, 96)).bytes(), corrupt, "'third': rows of 48 elements"},
      {"known type", with_tensor(tensor("third", {256}, 16, 96)).bytes(), unsupported, "'third' has the type IQ2_XXS"},
      {"removed type", with_tensor(tensor("third", {256}, 31, 96)).bytes(), unsupported, "'third' has the type Q4_0_4_4"},
      {"unknown type", with_tensor(tensor("third", {256}, 4000, 96)).bytes(), unsupported, "'third' has the unknown type id 4000"},
      {"mis-aligned", with_tensor(tensor("third", {4}, 0, 100)).bytes(), corrupt, "'third' is at offset 100"},
      {"beyond the end", with_tensor(tensor("third", {64}, 0, 128)).bytes(), corrupt, "'third' (offset 128, 256 bytes)"},
      {"offset near 2^64", with_tensor(tensor("third", {4}, 0, ~0ull - 31)).bytes(), corrupt, "'third' (offset"},
      {"overlapping", with_tensor(tensor("third", {64}, 0, 0)).bytes(), corrupt, "'first' and 'third' overlap"},
      {"overlapping by one block", with_tensor(tensor("third", {32}, 2, 64)).bytes(), corrupt, "'second' and 'third' overlap"},
  };
}

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const auto file = GgufFile::parse(as_bytes(c.bytes), "x.gguf");
    ASSERT_FALSE(file) << c.name;
    EXPECT_EQ(file.error().code, c.code) << c.name << ": " << file.error().message;
    EXPECT_TRUE(file.error().message.starts_with("x.gguf: ")) << file.error().message;
    EXPECT_NE(file.error().message.find(c.message), std::string::npos) << c.name << ": " << file.error().message;
  }
}

TEST(GgufCorruption, TheUncorruptedFileIsRead) {
  const std::string bytes = valid().bytes();
  const auto file = GgufFile::parse(as_bytes(bytes), "x.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensor("second")->view.bytes.size(), 36u);
}

TEST(GgufCorruption, BadHeadersAreRefused) { expect_refused(header_cases()); }
TEST(GgufCorruption, BadMetadataIsRefused) { expect_refused(metadata_cases()); }
TEST(GgufCorruption, BadTensorEntriesAreRefused) { expect_refused(tensor_cases()); }

TEST(GgufCorruption, EveryTruncationIsRefused) {
  const std::string bytes = valid().bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_FALSE(GgufFile::parse(as_bytes(cut), "x.gguf")) << size;
  }
}

// Whatever one wrong byte does, the file is refused or its tensors lie within it.
TEST(GgufCorruption, EveryByteMayBeWrong) {
  const std::string bytes = with_entry(array_entry("flags", 7, 2, u8(1) + u8(0))).bytes();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const auto file = GgufFile::parse(as_bytes(changed), "x.gguf");
      if (!file) continue;
      for (const NamedTensor& t : file->index().tensors()) {
        EXPECT_GE(t.view.bytes.data(), as_bytes(changed).data());
        EXPECT_LE(t.view.bytes.data() + t.view.bytes.size(), as_bytes(changed).data() + changed.size());
        EXPECT_EQ(t.view.bytes.size(), static_cast<std::size_t>(t.view.rows() * t.view.bytes_per_row()));
      }
    }
  }
}

TEST(GgufCorruption, ArraysTogetherAreBounded) {
  const std::string zeros((1u << 23) + 1, '\0');
  GgufParts parts;
  parts.entries = {array_entry("x", 0, zeros.size(), zeros), array_entry("y", 0, zeros.size(), zeros)};
  const std::string bytes = parts.bytes();
  const auto file = GgufFile::parse(as_bytes(bytes), "x.gguf");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(file.error().message.find("'y'"), std::string::npos) << file.error().message;
}

}  // namespace
}  // namespace weir::formats
