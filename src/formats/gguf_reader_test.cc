// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_reader.h"

#include <gtest/gtest.h>

#include <map>

#include "base/file_io.h"
#include "base/testing.h"
#include "formats/gguf_test_bytes.h"
#include "formats/summary.h"

namespace weir::formats {
namespace {

TEST(GgufReader, OpensTheDefaultModel) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const auto file = GgufFile::open(testing::smollm2_path());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->metadata().size(), 33u);
  EXPECT_EQ(file->index().tensors().size(), 272u);
  const TensorSummary summary = summarize(file->index());
  std::map<std::string, std::int64_t> types;
  for (const TypeTotal& total : summary.by_type) types[dtype_name(total.type)] = total.tensors;
  EXPECT_EQ(types, (std::map<std::string, std::int64_t>{{"F32", 61}, {"Q4_1", 210}, {"Q8_0", 1}}));
  EXPECT_EQ(summary.parameters, 134'515'008);
  EXPECT_EQ(file->get_int("llama.block_count").value(), 30);
  EXPECT_EQ(file->get_strings("tokenizer.ggml.tokens")->size(), 49152u);
  EXPECT_EQ(file->tensor("token_embd.weight")->view.shape, (std::vector<std::int64_t>{49152, 576}));
}

TEST(GgufReader, OpensAllReferenceArchitectures) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(testing::data_path("arch"))) {
    if (entry.path().extension() != ".gguf") continue;
    const auto file = GgufFile::open(entry.path());
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->get_string("general.architecture")) << entry.path();
    EXPECT_GT(file->index().tensors().size(), 5u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 40);
}

// One entry of each kind, and what each getter makes of it.
GgufFile every_kind(const std::string& bytes) {
  auto file = GgufFile::parse(as_bytes(bytes), "kinds.gguf");
  EXPECT_TRUE(file) << file.error().message;
  return std::move(*file);
}

std::string every_kind_bytes() {
  GgufParts parts;
  parts.entries = {entry("u8", 0, u8(200)),
                   entry("i8", 1, u8(200)),
                   entry("u16", 2, raw<std::uint16_t>(60000)),
                   entry("i16", 3, raw<std::int16_t>(-3)),
                   entry("u32", 4, u32(4000000000u)),
                   entry("i32", 5, raw<std::int32_t>(-4)),
                   entry("f32", 6, raw(0.5f)),
                   entry("bool", 7, u8(1)),
                   entry("str", 8, str("text")),
                   entry("u64", 10, u64(~0ull)),
                   entry("i64", 11, raw<std::int64_t>(-5)),
                   entry("f64", 12, raw(0.1)),
                   array_entry("u16s", 2, 2, raw<std::uint16_t>(1) + raw<std::uint16_t>(65535)),
                   array_entry("i32s", 5, 2, raw<std::int32_t>(-1) + raw<std::int32_t>(2)),
                   array_entry("f32s", 6, 2, raw(0.25f) + raw(-2.0f)),
                   array_entry("bools", 7, 3, u8(1) + u8(0) + u8(1)),
                   array_entry("strs", 8, 2, str("") + str("b")),
                   array_entry("none", 8, 0, ""),
                   array_entry("lists", 9, 2, u32(0) + u64(1) + u8(9) + u32(8) + u64(1) + str("z"))};
  return parts.bytes();
}

TEST(GgufReader, ReadsEveryScalarKind) {
  const std::string bytes = every_kind_bytes();
  const GgufFile file = every_kind(bytes);
  EXPECT_EQ(file.get_int("u8").value(), 200);
  EXPECT_EQ(file.get_int("i8").value(), -56);
  EXPECT_EQ(file.get_int("u16").value(), 60000);
  EXPECT_EQ(file.get_int("i16").value(), -3);
  EXPECT_EQ(file.get_int("u32").value(), 4000000000);
  EXPECT_EQ(file.get_int("i32").value(), -4);
  EXPECT_EQ(file.get_int("i64").value(), -5);
  EXPECT_EQ(file.get_double("f32").value(), 0.5);
  EXPECT_EQ(file.get_double("f64").value(), 0.1);
  EXPECT_EQ(file.get_double("i16").value(), -3.0);
  EXPECT_EQ(file.get_bool("bool").value(), true);
  EXPECT_EQ(file.get_string("str").value(), "text");
  EXPECT_EQ(std::get<std::uint64_t>(*file.find("u64")), ~0ull);
  EXPECT_EQ(file.metadata()[2].type_name, "u16");
}

TEST(GgufReader, ReadsEveryArrayKind) {
  const std::string bytes = every_kind_bytes();
  const GgufFile file = every_kind(bytes);
  EXPECT_EQ(file.get_ints("u16s"), (std::vector<std::int64_t>{1, 65535}));
  EXPECT_EQ(file.get_ints("i32s"), (std::vector<std::int64_t>{-1, 2}));
  EXPECT_EQ(file.get_ints("bools"), (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_EQ(file.get_doubles("f32s"), (std::vector<double>{0.25, -2}));
  EXPECT_EQ(file.get_doubles("i32s"), (std::vector<double>{-1, 2}));
  EXPECT_EQ(*file.get_strings("strs"), (std::vector<std::string>{"", "b"}));
  EXPECT_TRUE(file.get_strings("none")->empty());
  const auto& lists = std::get<GgufNestedArray>(std::get<GgufArray>(*file.find("lists"))).items;
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(std::get<std::vector<std::uint64_t>>(lists[0].values), std::vector<std::uint64_t>{9});
  EXPECT_EQ(std::get<std::vector<std::string>>(lists[1].values), std::vector<std::string>{"z"});
  EXPECT_EQ(file.metadata().back().type_name, "arr[arr]");
}

TEST(GgufReader, WrongKindsAreErrorsThatNameTheKey) {
  const std::string bytes = every_kind_bytes();
  const GgufFile file = every_kind(bytes);
  EXPECT_EQ(file.get_int("absent").error().message, "kinds.gguf: the key 'absent' is missing");
  EXPECT_EQ(file.get_int("str").error().message, "kinds.gguf: the key 'str' should be an integer but is str");
  EXPECT_EQ(file.get_int("u64").error().message, "kinds.gguf: the key 'u64' is 18446744073709551615, which is too large");
  EXPECT_FALSE(file.get_bool("u8"));
  EXPECT_FALSE(file.get_string("strs"));
  EXPECT_FALSE(file.get_double("bool"));
  EXPECT_EQ(file.get_int_or("absent", 3).value(), 3);
  EXPECT_FALSE(file.get_int_or("f32", 3));
  EXPECT_EQ(file.get_string_or("absent", "x").value(), "x");
  EXPECT_EQ(file.get_strings("u16s"), nullptr);
  EXPECT_EQ(file.get_ints("strs"), std::nullopt);
  EXPECT_EQ(file.get_ints("u8"), std::nullopt);
  EXPECT_EQ(file.get_doubles("absent"), std::nullopt);
}

TEST(GgufReader, ShapesAreOutermostFirstAndAlignmentIsHonoured) {
  GgufParts parts{.entries = {u32_entry("general.alignment", 128)},
                  .tensors = {tensor("w", {4, 3, 2}, 1, 128)},
                  .data = 128 + 48,
                  .version = 2,
                  .alignment = 128};
  const std::string bytes = parts.bytes();
  const auto file = GgufFile::parse(as_bytes(bytes), "x.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 2u);
  EXPECT_EQ(file->alignment(), 128u);
  const TensorView& view = file->tensor("w")->view;
  EXPECT_EQ(view.shape, (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(view.type, DType::kF16);
  EXPECT_EQ(view.bytes.size(), 48u);
  EXPECT_EQ(view.bytes.data() + view.bytes.size(), as_bytes(bytes).data() + bytes.size());
}

// The numbers and names of every type, apart from the table in dtype.cc.
TEST(GgufReader, KnowsTheTypesOfTheFormat) {
  const std::map<std::uint32_t, std::tuple<const char*, std::uint64_t, std::size_t>> types{
      {0, {"F32", 1, 4}},       {1, {"F16", 1, 2}},       {2, {"Q4_0", 32, 18}},    {3, {"Q4_1", 32, 20}},      {6, {"Q5_0", 32, 22}},
      {7, {"Q5_1", 32, 24}},    {8, {"Q8_0", 32, 34}},    {10, {"Q2_K", 256, 84}},  {11, {"Q3_K", 256, 110}},   {12, {"Q4_K", 256, 144}},
      {13, {"Q5_K", 256, 176}}, {14, {"Q6_K", 256, 210}}, {20, {"IQ4_NL", 32, 18}}, {23, {"IQ4_XS", 256, 136}}, {30, {"BF16", 1, 2}},
      {39, {"MXFP4", 32, 17}},  {24, {"I8", 1, 1}},       {25, {"I16", 1, 2}},      {26, {"I32", 1, 4}},        {27, {"I64", 1, 8}},
      {28, {"F64", 1, 8}}};
  for (std::uint32_t id = 0; id < 64; ++id) {
    const auto known = types.find(id);
    const std::uint64_t elements = known == types.end() ? 256 : std::get<1>(known->second);
    const std::string bytes = GgufParts{.entries = {}, .tensors = {tensor("w", {elements}, id, 0)}, .data = 4096}.bytes();
    const auto file = GgufFile::parse(as_bytes(bytes), "x.gguf");
    ASSERT_EQ(file.has_value(), known != types.end()) << id;
    if (!file) continue;
    EXPECT_STREQ(dtype_name(file->tensor("w")->view.type), std::get<0>(known->second));
    EXPECT_EQ(file->tensor("w")->view.bytes.size(), std::get<2>(known->second));
  }
}

TEST(GgufReader, HugeVocabularies) {
  std::string values;
  for (int i = 0; i < 300'000; ++i) values += str("token " + std::to_string(i));
  GgufParts parts;
  parts.entries = {array_entry("tokens", 8, 300'000, values)};
  const std::string bytes = parts.bytes();
  const auto file = GgufFile::parse(as_bytes(bytes), "x.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->get_strings("tokens")->back(), "token 299999");
}

// A sparse file: only the header takes room on the disk.
TEST(GgufReader, OffsetsBeyondFourGigabytes) {
  constexpr std::uint64_t kFar = 5ull << 30;
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "large.gguf";
  const std::string bytes = GgufParts{.entries = {}, .tensors = {tensor("far", {16}, 0, kFar)}, .data = 32}.bytes();
  ASSERT_TRUE(write_file_atomically(path, bytes));
  EXPECT_FALSE(GgufFile::open(path));
  std::filesystem::resize_file(path, bytes.size() - 32 + kFar + 64);
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensor("far")->view.bytes.size(), 64u);
  EXPECT_EQ(file->tensor("far")->view.bytes.back(), std::byte{0});
}

TEST(GgufReader, MissingFilesAndFoldersAreErrors) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(GgufFile::open(folder.path() / "none.gguf").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(GgufFile::open(folder.path()).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace weir::formats
