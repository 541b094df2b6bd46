// SPDX-License-Identifier: Apache-2.0
#include "store/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/test_downloads.h"
#include "store/test_zip.h"

namespace weir::store {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

Result<std::string> extracted(const ZipArchive& archive, std::string_view name) {
  const ZipMember* member = archive.find(name);
  if (!member) return fail(ErrorCode::kNotFound, "no {}", name);
  std::string content;
  WEIR_TRY(archive.extract(*member, [&](std::span<const std::byte> piece) -> Status {
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  }));
  return content;
}

// Reads everything there is; must come back, whatever the bytes.
std::string failure_of(const std::string& zip) {
  const auto archive = ZipArchive::parse(bytes_of(zip));
  if (!archive) return archive.error().message;
  for (const ZipMember& member : archive->members())
    if (const auto content = extracted(*archive, member.name); !content) return content.error().message;
  return "";
}

const std::string kLong = sample_content(300'000) + std::string(600'000, 'z');

TEST(ZipArchive, GivesStoredAndDeflatedMembers) {
  const std::string zip = zip_of({{"a/long", kLong, true}, {"short", "hello", false}, {"empty", "", true}});
  const auto archive = ZipArchive::parse(bytes_of(zip));
  ASSERT_TRUE(archive) << archive.error().message;
  EXPECT_EQ(archive->members().size(), 3u);
  EXPECT_EQ(extracted(*archive, "a/long"), kLong);
  EXPECT_EQ(extracted(*archive, "short"), "hello");
  EXPECT_EQ(extracted(*archive, "empty"), "");
  EXPECT_FALSE(archive->find("long"));
}

TEST(ZipArchive, EveryTruncationIsAnError) {
  const std::string zip = zip_of({{"a", kLong.substr(0, 400), true}, {"b", "hello", false}});
  for (std::size_t size = 0; size < zip.size(); ++size) EXPECT_NE(failure_of(zip.substr(0, size)), "") << size;
}

TEST(ZipArchive, DamagedContentIsFoundByItsCheckSum) {
  std::string stored = zip_of({{"a", "hello world", false}});
  stored[stored.find("hello")] = 'j';
  EXPECT_THAT(failure_of(stored), HasSubstr("CRC"));
  std::string deflated = zip_of({{"a", kLong, true}});
  deflated[1000] = static_cast<char>(deflated[1000] ^ 0x10);
  EXPECT_NE(failure_of(deflated), "");
}

TEST(ZipArchive, EveryFlippedByteIsAnErrorOrTheSameContent) {
  const std::string content = kLong.substr(0, 200), zip = zip_of({{"a", content, true}});
  for (std::size_t at = 0; at < zip.size(); ++at)
    for (int bit : {0x01, 0x80, 0xff}) {
      std::string damaged = zip;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      const auto archive = ZipArchive::parse(bytes_of(damaged));
      if (!archive) continue;
      EXPECT_EQ(extracted(*archive, "a").value_or(content), content) << at;
    }
}

TEST(ZipArchive, SizesThatLieAreFoundOut) {
  const auto with_size = [](std::string zip, std::uint32_t size) {
    const std::size_t entry = zip.find("PK\x01\x02");
    for (int i = 0; i < 4; ++i) zip[entry + 24 + static_cast<std::size_t>(i)] = static_cast<char>(size >> (8 * i));
    return zip;
  };
  const std::string zip = zip_of({{"a", kLong, true}});
  EXPECT_THAT(failure_of(with_size(zip, 1000)), HasSubstr("larger than stated"));
  EXPECT_THAT(failure_of(with_size(zip, 0xfffffff0u)), HasSubstr("smaller than stated"));
}

TEST(ZipArchive, DuplicateNamesAreRefused) { EXPECT_THAT(failure_of(zip_of({{"a", "1"}, {"a", "2"}})), HasSubstr("same name")); }

TEST(ZipArchive, OtherFilesAreNotZipFiles) {
  EXPECT_NE(failure_of(""), "");
  EXPECT_NE(failure_of("<html></html>"), "");
  EXPECT_NE(failure_of(std::string(100'000, 'P')), "");
}

}  // namespace
}  // namespace weir::store
