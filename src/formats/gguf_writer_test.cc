// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_writer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file_io.h"
#include "base/testing.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_test_bytes.h"

namespace weir::formats {
namespace {

GgufWriter writer_of(const GgufFile& file) {
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata()) EXPECT_TRUE(writer.add(entry));
  for (const NamedTensor& tensor : file.index().tensors()) EXPECT_TRUE(writer.add(tensor));
  return writer;
}

void expect_same_bytes(const std::filesystem::path& path) {
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  const auto written = writer_of(*file).to_bytes();
  ASSERT_TRUE(written) << written.error().message;
  const auto original = read_file(path);
  ASSERT_TRUE(original);
  EXPECT_TRUE(*written == *original) << path << ": " << written->size() << " and " << original->size() << " bytes";
}

// Files made by llama.cpp's own tools, read and written again, have the same bytes: metadata, order, padding, tensors.
TEST(GgufWriter, ReproducesReferenceFiles) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(testing::data_path("arch"))) {
    if (entry.path().extension() != ".gguf") continue;
    expect_same_bytes(entry.path());
    ++files;
  }
  EXPECT_EQ(files, 40);
}

TEST(GgufWriter, ReproducesTheDefaultModel) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  expect_same_bytes(testing::smollm2_path());
}

std::vector<GgufEntry> entries_of_every_kind() {
  return {
      gguf_scalar("u8", GgufType::kU8, std::uint64_t{255}),
      gguf_scalar("i8", GgufType::kI8, std::int64_t{-128}),
      gguf_scalar("u16", GgufType::kU16, std::uint64_t{65535}),
      gguf_scalar("i16", GgufType::kI16, std::int64_t{-32768}),
      gguf_u32("u32", 4294967295u),
      gguf_scalar("i32", GgufType::kI32, std::int64_t{-2147483648}),
      gguf_f32("f32", 0.1f),
      gguf_bool("bool", true),
      gguf_string("str", "grüße"),
      gguf_scalar("u64", GgufType::kU64, ~std::uint64_t{0}),
      gguf_scalar("i64", GgufType::kI64, std::int64_t{-1}),
      gguf_scalar("f64", GgufType::kF64, 0.1),
      gguf_array("u8s", GgufType::kU8, std::vector<std::uint64_t>{0, 255}),
      gguf_array("i64s", GgufType::kI64, std::vector<std::int64_t>{-1, 1}),
      gguf_array("f32s", GgufType::kF32, std::vector<double>{0.5, -1}),
      gguf_array("bools", GgufType::kBool, std::vector<bool>{true, false}),
      gguf_array("strs", GgufType::kString, std::vector<std::string>{"", "x"}),
      gguf_array("empty", GgufType::kF64, std::vector<double>{}),
      gguf_array("nested", GgufType::kArray,
                 GgufNestedArray{{{GgufType::kU16, std::vector<std::uint64_t>{7}}, {GgufType::kString, std::vector<std::string>{"y"}}}})};
}

TEST(GgufWriter, EveryKindOfMetadataComesBack) {
  const testing::TemporaryFolder folder;
  GgufWriter writer;
  for (const GgufEntry& entry : entries_of_every_kind()) ASSERT_TRUE(writer.add(entry)) << entry.key;
  ASSERT_TRUE(writer.write(folder.path() / "x.gguf"));
  const auto file = GgufFile::open(folder.path() / "x.gguf");
  ASSERT_TRUE(file) << file.error().message;
  const auto wanted = entries_of_every_kind();
  ASSERT_EQ(file->metadata().size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const GgufEntry& entry = file->metadata()[i];
    EXPECT_EQ(entry.key, wanted[i].key);
    EXPECT_EQ(entry.type_name, wanted[i].type_name);
    EXPECT_TRUE(entry.value == wanted[i].value) << entry.key;
  }
}

TEST(GgufWriter, ValuesThatDoNotFitAreRefused) {
  GgufWriter writer;
  EXPECT_FALSE(writer.add(gguf_scalar("k", GgufType::kU8, std::uint64_t{256})));
  EXPECT_FALSE(writer.add(gguf_scalar("k", GgufType::kI32, std::int64_t{1} << 31)));
  EXPECT_FALSE(writer.add(gguf_scalar("k", GgufType::kU32, std::int64_t{1})));
  EXPECT_FALSE(writer.add(gguf_scalar("k", GgufType::kString, true)));
  EXPECT_FALSE(writer.add(gguf_array("k", GgufType::kI8, std::vector<std::int64_t>{1, 128})));
  EXPECT_FALSE(writer.add(gguf_array("k", GgufType::kI8, std::vector<std::string>{"1"})));
  EXPECT_FALSE(writer.add(gguf_string("", "no key")));
  EXPECT_FALSE(writer.add(gguf_u32("general.alignment", 48)));
  ASSERT_TRUE(writer.add(gguf_bool("k", false)));
  const auto again = writer.add(gguf_bool("k", true));
  EXPECT_EQ(again.error().message, "the key 'k' is added twice");
}

// Hands over `count` bytes one at a time.
GgufTensorSource streamed(std::string name, DType type, std::vector<std::int64_t> shape, int count) {
  return {std::move(name), type, std::move(shape), [count](const ByteSink& out) -> Status {
            for (int i = 0; i < count; ++i) WEIR_TRY(out(std::as_bytes(std::span(&"abcdefgh"[i % 8], 1))));
            return {};
          }};
}

TEST(GgufWriter, TensorsThatTheFormatCannotHoldAreRefused) {
  GgufWriter writer;
  EXPECT_FALSE(writer.add(streamed("w", DType::kU8, {4}, 4)));
  EXPECT_FALSE(writer.add(streamed("w", DType::kQ4_0, {48}, 27)));
  EXPECT_FALSE(writer.add(streamed("w", DType::kF32, {}, 4)));
  EXPECT_FALSE(writer.add(streamed("w", DType::kF32, {0, 4}, 0)));
  EXPECT_FALSE(writer.add(streamed("w", DType::kF32, {1, 1, 1, 1, 1}, 4)));
  EXPECT_FALSE(writer.add(streamed("", DType::kF32, {1}, 4)));
  ASSERT_TRUE(writer.add(streamed("w", DType::kF32, {1}, 4)));
  EXPECT_FALSE(writer.add(streamed("w", DType::kF32, {1}, 4)));
}

TEST(GgufWriter, StreamedTensorsAreAligned) {
  GgufWriter writer;
  EXPECT_FALSE(writer.add(gguf_scalar("general.alignment", GgufType::kI32, std::int64_t{-64})));
  EXPECT_FALSE(writer.add(gguf_string("general.alignment", "64")));
  ASSERT_TRUE(writer.add(gguf_scalar("general.alignment", GgufType::kI32, std::int64_t{64})));  // u32 by the book, any integer is read
  EXPECT_FALSE(writer.add(gguf_u32("general.alignment", 32)));
  ASSERT_TRUE(writer.add(streamed("a", DType::kI8, {3}, 3)));
  ASSERT_TRUE(writer.add(streamed("b", DType::kF16, {2, 5}, 20)));
  const auto bytes = writer.to_bytes();
  ASSERT_TRUE(bytes);
  const auto file = GgufFile::parse(as_bytes(*bytes), "x.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensor("b")->view.bytes.data() - file->tensor("a")->view.bytes.data(), 64);
  EXPECT_EQ(file->tensor("b")->view.shape, (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(file->tensor("b")->view.bytes.data()), 20), "abcdefghabcdefghabcd");
}

TEST(GgufWriter, AWrongNumberOfBytesLeavesNoFile) {
  const testing::TemporaryFolder folder;
  for (const int count : {11, 13}) {
    GgufWriter writer;
    ASSERT_TRUE(writer.add(streamed("w", DType::kF32, {3}, count)));
    const auto written = writer.write(folder.path() / "x.gguf");
    ASSERT_FALSE(written);
    EXPECT_NE(written.error().message.find("tensor 'w'"), std::string::npos) << written.error().message;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

// Splits the llama reference file into parts of at most 8 kB.
std::vector<std::filesystem::path> split_reference(const std::filesystem::path& folder, const GgufFile& whole) {
  const auto paths = writer_of(whole).write_split(folder / "tiny", 8192);
  EXPECT_TRUE(paths) << paths.error().message;
  return *paths;
}

TEST(GgufSplit, AnyPartOpensTheWhole) {
  const testing::TemporaryFolder folder;
  const auto whole = GgufFile::open(testing::data_path("arch/llama/model-f32.gguf"));
  ASSERT_TRUE(whole);
  const auto paths = split_reference(folder.path(), *whole);
  ASSERT_GT(paths.size(), 2u);
  EXPECT_EQ(paths[1].filename(), fmt::format("tiny-00002-of-{:05}.gguf", paths.size()));
  for (const auto& path : paths) {
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->get_string("general.architecture").value(), "llama");
    EXPECT_EQ(file->index().files().size(), paths.size());
    ASSERT_EQ(file->index().tensors().size(), whole->index().tensors().size());
    for (const NamedTensor& tensor : whole->index().tensors()) {
      const NamedTensor* same = file->tensor(tensor.name);
      ASSERT_TRUE(same) << tensor.name;
      EXPECT_EQ(same->view.shape, tensor.view.shape);
      EXPECT_TRUE(std::ranges::equal(same->view.bytes, tensor.view.bytes)) << tensor.name;
      const auto in_file = file->index().files()[static_cast<std::size_t>(same->file)]->bytes();
      EXPECT_GE(same->view.bytes.data(), in_file.data());
      EXPECT_LT(same->view.bytes.data(), in_file.data() + in_file.size());
    }
  }
}

TEST(GgufSplit, MissingMovedAndMixedPartsAreErrors) {
  const testing::TemporaryFolder folder;
  const auto whole = GgufFile::open(testing::data_path("arch/llama/model-f32.gguf"));
  ASSERT_TRUE(whole);
  const auto paths = split_reference(folder.path(), *whole);
  ASSERT_GT(paths.size(), 2u);
  const auto message = [&](const std::filesystem::path& path) {
    const auto file = GgufFile::open(path);
    return file ? std::string("opened") : file.error().message;
  };
  const auto away = folder.path() / "away.gguf";
  std::filesystem::rename(paths[1], away);
  EXPECT_NE(message(paths[0]).find("part 2 of"), std::string::npos) << message(paths[0]);
  EXPECT_NE(message(away).find("give it its name back"), std::string::npos) << message(away);
  std::filesystem::copy_file(paths[2], paths[1]);
  EXPECT_NE(message(paths[0]).find("its name says part 2"), std::string::npos) << message(paths[0]);
}

GgufParts part(std::uint16_t number, std::uint16_t count, std::int32_t tensors, const std::string& name) {
  return {
      .entries = {entry("split.no", 2, raw(number)), entry("split.count", 2, raw(count)), entry("split.tensors.count", 5, raw(tensors))},
      .tensors = {tensor(name, {4}, 0, 0)},
      .data = 16};
}

TEST(GgufSplit, CountsAndNamesOfAllPartsAreChecked) {
  const testing::TemporaryFolder folder;
  const auto first = folder.path() / "x-00001-of-00002.gguf", second = folder.path() / "x-00002-of-00002.gguf";
  const auto open = [&](const GgufParts& a, const GgufParts& b) {
    EXPECT_TRUE(write_file_atomically(first, a.bytes()));
    EXPECT_TRUE(write_file_atomically(second, b.bytes()));
    const auto file = GgufFile::open(second);
    return file ? std::string("opened") : file.error().message;
  };
  EXPECT_EQ(open(part(0, 2, 2, "a"), part(1, 2, 2, "b")), "opened");
  EXPECT_NE(open(part(0, 2, 3, "a"), part(1, 2, 3, "b")).find("split.tensors.count is 3, the 2 parts have 2"), std::string::npos);
  EXPECT_NE(open(part(0, 2, 2, "a"), part(1, 2, 2, "a")).find("'a' occurs twice"), std::string::npos);
  EXPECT_NE(open(part(0, 3, 2, "a"), part(1, 2, 2, "b")).find("part 1 of 3"), std::string::npos);
}

}  // namespace
}  // namespace weir::formats
