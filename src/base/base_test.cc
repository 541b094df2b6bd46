// SPDX-License-Identifier: Apache-2.0
// The small pieces of base: units, JSON getters, atomic files.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file_io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/testing.h"
#include "base/units.h"

namespace weir {
namespace {

TEST(Units, PickTheStepAReaderExpects) {
  EXPECT_EQ(format_bytes(98'362'432), "98.4 MB");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(999'900), "1 MB");
  EXPECT_EQ(format_count(134'515'008), "135 M");
  EXPECT_EQ(format_duration(0.0123), "12.3 ms");
  EXPECT_EQ(format_duration(200), "3 min 20 s");
}

TEST(Json, GettersNameTheKeyAndAcceptExactFloats) {
  auto value = json::parse(R"({"a": 4.0, "b": 1e4, "s": "x", "n": null})", "test");
  ASSERT_TRUE(value);
  const json::Object& o = value->get_object();
  EXPECT_EQ(json::get_int(o, "a"), 4);
  EXPECT_EQ(json::get_int(o, "b"), 10000);
  EXPECT_EQ(json::get_int_or(o, "n", 7), 7);
  EXPECT_EQ(json::get_int({{"u", std::uint64_t{9}}}, "u"), 9);  // as a program writes it
  EXPECT_NE(json::get_int({{"u", ~std::uint64_t{0}}}, "u").error().message.find("too large"), std::string::npos);
  EXPECT_NE(json::get_int(o, "s").error().message.find("'s'"), std::string::npos);
  EXPECT_NE(json::get_int(o, "absent").error().message.find("'absent'"), std::string::npos);
}

TEST(Json, RefusesWhatIsNotOneWholeValue) {
  for (const char* text : {"", "{", "{} x", "[1,]", "nan", "{\"a\":1"}) EXPECT_FALSE(json::parse(text, "test")) << text;
  EXPECT_FALSE(json::parse(std::string(100000, '['), "deep"));
}

TEST(Json, ReadsPythonsNonFiniteNumbersAsNullWhenAllowed) {
  auto value = json::parse(R"({"limit": [0.0, Infinity], "s": "NaN \" NaN"})", "test", {.allow_non_finite = true});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_TRUE(value->at("limit").at(1).is_null());
  EXPECT_EQ(value->at("s").as_string(), "NaN \" NaN");
}

TEST(Log, ShowsControlCharactersInsteadOfObeyingThem) { EXPECT_EQ(log::printable("a\n\x1b[2Jé"), "a\\x0a\\x1b[2Jé"); }

TEST(AtomicFile, LeavesTheOldContentUntilCommit) {
  const testing::TemporaryFolder temporary;
  const auto& folder = temporary.path();
  const auto path = folder / "x";
  ASSERT_TRUE(write_file_atomically(path, "old"));
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write(std::string_view("new")));
    EXPECT_EQ(read_file(path), "old");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST(MappedFile, SeesTheBytesAndReportsMissingFiles) {
  const testing::TemporaryFolder temporary;
  const auto& folder = temporary.path();
  ASSERT_TRUE(write_file_atomically(folder / "x", "hello"));
  ASSERT_TRUE(write_file_atomically(folder / "empty", ""));
  auto file = MappedFile::open(folder / "x");
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->bytes().size(), 5u);
  EXPECT_EQ((*MappedFile::open(folder / "empty"))->bytes().size(), 0u);
  EXPECT_EQ(MappedFile::open(folder / "missing").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(MappedFile::open(folder).error().code, ErrorCode::kIo);
}

TEST(MappedFile, ReadPartsKeepTheirBytes) {
  const testing::TemporaryFolder temporary;
  const auto path = temporary.path() / "x";
  ASSERT_TRUE(write_file_atomically(path, "0123456789" + std::string(10'000, 'x')));
  const auto part = MappedFile::read_part(path, 3, 9'000);
  ASSERT_TRUE(part);
  (*part)->release(0, 9'000);  // does nothing: there is no file to read them from again
  const std::string_view text(reinterpret_cast<const char*>((*part)->bytes().data()), (*part)->bytes().size());
  EXPECT_EQ(text, "3456789" + std::string(8'993, 'x'));
  EXPECT_EQ((*MappedFile::read_part(path, 10'010, 0))->bytes().size(), 0u);
  for (const auto& [offset, length] : {std::pair<std::uint64_t, std::size_t>{10'000, 11}, {0, 10'011}, {1u << 20, 1}, {0, ~std::size_t{0}}})
    EXPECT_EQ(MappedFile::read_part(path, offset, length).error().code, ErrorCode::kIo) << offset;
  EXPECT_EQ(MappedFile::read_part(temporary.path() / "missing", 0, 1).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace weir
