// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include "base/file_io.h"
#include "base/testing.h"
#include "formats/gguf_test_bytes.h"
#include "formats/json_duplicates.h"

namespace weir::formats {
namespace {

std::string file_bytes(std::string_view header, std::size_t data) {
  std::string text = u64(header.size()) + std::string(header);
  for (std::size_t i = 0; i < data; ++i) text += static_cast<char>(i + 1);
  return text;
}

// A header of one tensor "w" with these fields.
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"w":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
}

const std::string kValid =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[6,14]},"a":{"dtype":"BF16","shape":[3,1],"data_offsets":[0,6]}}  )";

TEST(Safetensors, ReadsTypesShapesAndBytes) {
  const std::string bytes = file_bytes(kValid, 14);
  const auto file = SafetensorsFile::parse(as_bytes(bytes), "x");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->index().tensors().size(), 2u);
  EXPECT_EQ(file->index().tensors()[0].name, "a");  // in file order
  EXPECT_EQ(file->metadata().at("format"), "pt");
  const TensorView& b = file->tensor("b")->view;
  EXPECT_EQ(b.type, DType::kF32);
  EXPECT_EQ(b.shape, std::vector<std::int64_t>{2});
  ASSERT_EQ(b.bytes.size(), 8u);
  EXPECT_EQ(b.bytes[0], std::byte{7});
}

TEST(Safetensors, ReadsEveryTypeThatIsSupported) {
  const std::vector<std::pair<const char*, int>> types{{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I8", 1},
                                                       {"I16", 2}, {"I32", 4}, {"I64", 8},  {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, size] : types) {
    const std::string bytes = file_bytes(one(name, "[3]", fmt::format("[0,{}]", 3 * size)), static_cast<std::size_t>(3 * size));
    const auto file = SafetensorsFile::parse(as_bytes(bytes), "x");
    ASSERT_TRUE(file) << name << ": " << file.error().message;
    EXPECT_EQ(dtype_info(file->tensor("w")->view.type).block_bytes, size);
  }
}

TEST(Safetensors, ScalarsEmptyTensorsAndEmptyFiles) {
  const std::string bytes =
      file_bytes(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}})", 4);
  const auto file = SafetensorsFile::parse(as_bytes(bytes), "x");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensor("s")->view.elements(), 1);
  EXPECT_EQ(file->tensor("e")->view.elements(), 0);
  const std::string none = file_bytes("{}", 0);
  EXPECT_TRUE(SafetensorsFile::parse(as_bytes(none), "x"));
}

// Early writers did not pad the header: floats then lie at odd addresses of the map.
TEST(Safetensors, MisalignedTensorsAreReadIntoMemory) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "x.safetensors";
  for (int spaces = 0; spaces < 8; ++spaces) {
    const std::string header = one("F32", "[2]", "[0,8]") + std::string(static_cast<std::size_t>(spaces), ' ');
    ASSERT_TRUE(write_file_atomically(path, file_bytes(header, 8)));
    const auto file = SafetensorsFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    const auto bytes = file->tensor("w")->view.bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 4, 0u);
    EXPECT_EQ(bytes[0], std::byte{1});
    EXPECT_EQ(bytes[7], std::byte{8});
    EXPECT_EQ(file->index().files().size(), (header.size() % 4 == 0) ? 1u : 2u);
  }
}

TEST(Safetensors, TensorsBehindOddOnesAreAligned) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "model.safetensors";
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  ASSERT_TRUE(write_file_atomically(path, file_bytes(header, 5)));
  const auto index = open_safetensors_folder(folder.path());
  ASSERT_TRUE(index) << index.error().message;
  const NamedTensor* b = index->find("b");
  EXPECT_EQ(b->view.bytes.data(), index->files()[static_cast<std::size_t>(b->file)]->bytes().data());
  EXPECT_EQ(b->view.bytes[0], std::byte{2});
  EXPECT_EQ(index->find("a")->file, 0);
}

struct Case {
  const char* name;
  std::string bytes;
  ErrorCode code;
  const char* message;
};

std::vector<Case> bad_headers() {
  const auto corrupt = ErrorCode::kCorrupt;
  return {
      {"too short", "1234567", corrupt, "7 bytes are too few"},
      {"huge header", u64(~0ull) + "{}", corrupt, "header of 18446744073709551615 bytes"},
      {"header of 100 MB and one", u64(100'000'001) + "{}", corrupt, "100000000 are allowed"},
      {"header beyond the file", u64(1000) + "{}", corrupt, "header of 1000 bytes in a file of 10"},
      {"LFS pointer", "version https://git-lfs.github.com/spec/v1\n", corrupt, "git lfs pull"},
      {"no JSON", file_bytes("{nothing}", 0), corrupt, "not valid JSON"},
      {"no object", file_bytes("[1]", 0), corrupt, "does not begin with '{'"},
      {"space before", file_bytes(" {}", 0), corrupt, "does not begin with '{'"},
      {"text after", file_bytes("{}{}", 0), corrupt, "not valid JSON"},
      {"too deep", file_bytes(R"({"w":)" + std::string(5000, '['), 0), corrupt, "not valid JSON"},
      {"metadata no object", file_bytes(R"({"__metadata__":[]})", 0), corrupt, "'__metadata__' is no JSON object"},
      {"metadata no string", file_bytes(R"({"__metadata__":{"n":1}})", 0), corrupt, "'n', which is no string"},
      {"tensor no object", file_bytes(R"({"w":1})", 0), corrupt, "tensor 'w': it should be a JSON object"},
  };
}

std::vector<Case> bad_entries() {
  const auto corrupt = ErrorCode::kCorrupt, unsupported = ErrorCode::kUnsupported;
  const std::string twice =
      R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"\u0077":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  const std::string overlap =
      R"({"v":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  const std::string hole = R"({"v":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  return {
      {"no dtype", file_bytes(R"({"w":{"shape":[1],"data_offsets":[0,1]}})", 1), corrupt, "'dtype' is missing"},
      {"no shape", file_bytes(R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", 1), corrupt, "'shape' is missing"},
      {"no offsets", file_bytes(R"({"w":{"dtype":"U8","shape":[1]}})", 1), corrupt, "'data_offsets' is missing"},
      {"unsupported type", file_bytes(one("F8_E4M3", "[1]", "[0,1]"), 1), unsupported, "tensor 'w': the type 'F8_E4M3'"},
      {"negative dimension", file_bytes(one("U8", "[-1]", "[0,1]"), 1), corrupt, "'shape' has something that is no count"},
      {"fraction", file_bytes(one("U8", "[1.5]", "[0,1]"), 1), corrupt, "'shape' has something that is no count"},
      {"dimension of 2^63", file_bytes(one("U8", "[9223372036854775808]", "[0,1]"), 1), corrupt, "no count"},
      {"product overflows", file_bytes(one("U8", "[4294967296,4294967296]", "[0,1]"), 1), corrupt, "dimensions multiply"},
      {"zero beside an overflow", file_bytes(one("F64", "[0,4611686018427387903]", "[0,0]"), 0), corrupt, "dimensions multiply"},
      {"nine dimensions", file_bytes(one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1), corrupt, "'shape' has 9 numbers"},
      {"size does not match", file_bytes(one("F32", "[2]", "[0,4]"), 4), corrupt, "F32 [2] takes 8 bytes, 'data_offsets' gives it 4"},
      {"backward offsets", file_bytes(one("U8", "[1]", "[1,0]"), 1), corrupt, "[begin, end]"},
      {"one offset", file_bytes(one("U8", "[1]", "[1]"), 1), corrupt, "[begin, end]"},
      {"beyond the end", file_bytes(one("U8", "[2]", "[0,2]"), 1), corrupt, "ends at byte 2 of 1"},
      {"repeated tensor", file_bytes(twice, 4), corrupt, "'w' occurs twice"},
      {"repeated field", file_bytes(R"({"w":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1), corrupt,
       "'dtype' occurs twice"},
      {"overlap", file_bytes(overlap, 4), corrupt, "'v' and 'w' overlap"},
      {"hole", file_bytes(hole, 4), corrupt, "bytes 1 to 2 before tensor 'w'"},
      {"hole at the start", file_bytes(one("U8", "[1]", "[1,2]"), 2), corrupt, "bytes 0 to 1 before tensor 'w'"},
      {"bytes left over", file_bytes(one("U8", "[1]", "[0,1]"), 3), corrupt, "2 bytes after the last tensor"},
  };
}

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const auto file = SafetensorsFile::parse(as_bytes(c.bytes), "x");
    ASSERT_FALSE(file) << c.name;
    EXPECT_EQ(file.error().code, c.code) << c.name << ": " << file.error().message;
    EXPECT_NE(file.error().message.find(c.message), std::string::npos) << c.name << ": " << file.error().message;
  }
}

TEST(Safetensors, BadHeadersAreRefused) { expect_refused(bad_headers()); }
TEST(Safetensors, BadEntriesAreRefused) { expect_refused(bad_entries()); }

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string bytes = file_bytes(kValid, 14);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_FALSE(SafetensorsFile::parse(as_bytes(cut), "x")) << size;
  }
}

TEST(JsonDuplicates, FindsRepeatedKeysAtEveryDepth) {
  EXPECT_EQ(find_duplicate_key(R"({"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]})"), std::nullopt);
  EXPECT_EQ(find_duplicate_key(R"({"a":1,"a":2})"), "a");
  EXPECT_EQ(find_duplicate_key(R"({"x":[{"k\n":1,"k\u000a":2}]})"), "k\n");
  EXPECT_EQ(find_duplicate_key(R"({"a":"a","b":"a"})"), std::nullopt);
}

// Folders of two shards: w is in the first, v in the second.
class Shards : public ::testing::Test {
 protected:
  void SetUp() override {
    write("model-00001-of-00002.safetensors", file_bytes(one("U8", "[1]", "[0,1]"), 1));
    write("model-00002-of-00002.safetensors", file_bytes(R"({"v":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2));
    write_index(R"("w":"model-00001-of-00002.safetensors","v":"model-00002-of-00002.safetensors")");
  }
  void write(const char* name, const std::string& bytes) { ASSERT_TRUE(write_file_atomically(folder_.path() / name, bytes)); }
  void write_index(std::string_view map) {
    write("model.safetensors.index.json", fmt::format(R"({{"metadata":{{"total_size":3}},"weight_map":{{{}}}}})", map));
  }
  std::string message() const {
    const auto index = open_safetensors_folder(folder_.path());
    return index ? "opened" : index.error().message;
  }
  void expect_refused(std::string_view part) const { EXPECT_NE(message().find(part), std::string::npos) << message(); }

  testing::TemporaryFolder folder_;
};

TEST_F(Shards, AreOneIndex) {
  const auto index = open_safetensors_folder(folder_.path());
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->tensors().size(), 2u);
  EXPECT_EQ(index->files().size(), 2u);
  const NamedTensor* v = index->find("v");
  ASSERT_TRUE(v);
  EXPECT_EQ(v->view.bytes[1], std::byte{2});
  EXPECT_EQ(index->files()[static_cast<std::size_t>(v->file)]->path().filename(), "model-00002-of-00002.safetensors");
}

TEST_F(Shards, NamesThatLeaveTheFolderAreRefused) {
  for (const char* name :
       {"../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..", "", "x.bin", "a\\\\b.safetensors", "x\\u0000.safetensors"}) {
    write_index(fmt::format(R"("w":"{}")", name));
    expect_refused("'w' is said to be in");
  }
}

TEST_F(Shards, MissingPiecesAreNamed) {
  std::filesystem::remove(folder_.path() / "model-00002-of-00002.safetensors");
  expect_refused("the shard 'model-00002-of-00002.safetensors' is missing");
  write_index(R"("w":"model-00001-of-00002.safetensors","u":"model-00001-of-00002.safetensors")");
  expect_refused("promises tensor 'u'");
}

TEST_F(Shards, BadIndexesAreRefused) {
  write_index(R"("w":"model-00001-of-00002.safetensors","w":"model-00002-of-00002.safetensors")");
  expect_refused("'w' occurs twice");
  write_index(R"("w":1)");
  expect_refused("the file of 'w' is no string");
  write_index("");
  expect_refused("'weight_map' is empty");
  write("model.safetensors.index.json", "{}");
  expect_refused("'weight_map' is missing");
  write("model.safetensors.index.json", "[]");
  expect_refused("'weight_map' is missing");
  write("model.safetensors.index.json", "{");
  expect_refused("not valid JSON");
}

TEST_F(Shards, OtherKindsOfWeightsAreNamed) {
  std::filesystem::remove(folder_.path() / "model.safetensors.index.json");
  expect_refused("neither model.safetensors nor");
  write("pytorch_model.bin", "x");
  expect_refused("convert them to safetensors");
}

}  // namespace
}  // namespace weir::formats
