// SPDX-License-Identifier: Apache-2.0
// UTF-8 repair, the normalisation forms, and every normalizer on every character against the reference library (as hashes).
#include "tokenizer/unicode.h"

#include <gmock/gmock.h>

#include "base/file_io.h"
#include "base/testing.h"
#include "tokenizer/json_normalizer.h"
#include "tokenizer/utf8.h"

namespace weir::tokenizer {
namespace {

std::string repaired(std::string_view text) {
  std::string buffer;
  return std::string(repair_utf8(text, buffer));
}

TEST(Utf8, ValidTextIsLeftAlone) {
  const std::string text = "a\u00e9\u4e2d\U0001f600\U0010ffff\ue000\ud7ff";
  EXPECT_EQ(repaired(text), text);
  EXPECT_EQ(to_utf8(to_utf32(text)), text);
}

// The examples of the Unicode standard's tables 3-8 to 3-11, and the sequence that another engine aborts on.
TEST(Utf8, EachMaximalBadPartBecomesOneReplacement) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(repaired("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(repaired("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(repaired("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(repaired("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(repaired("ascii ascii \xE4\xB8"), "ascii ascii " + r);
  EXPECT_EQ(repaired("\x80"), r);
}

TEST(Normalize, FollowsTheStandard) {
  EXPECT_EQ(normalize(U"\u00c5", NormalForm::kNfd), U"A\u030a");
  EXPECT_EQ(normalize(U"A\u030a", NormalForm::kNfc), U"\u00c5");
  EXPECT_EQ(normalize(U"\u1e9b\u0323", NormalForm::kNfc), U"\u1e9b\u0323");
  EXPECT_EQ(normalize(U"\u1e9b\u0323", NormalForm::kNfkc), U"\u1e69");
  EXPECT_EQ(normalize(U"a\u0315\u0300\u05ae\u0062", NormalForm::kNfc), U"\u00e0\u05ae\u0315\u0062");
  EXPECT_EQ(normalize(U"\ud55c\uae00", NormalForm::kNfd), U"\u1112\u1161\u11ab\u1100\u1173\u11af");
  EXPECT_EQ(normalize(U"\u1112\u1161\u11ab\u1100\u1173", NormalForm::kNfc), U"\ud55c\uadf8");
  EXPECT_EQ(normalize(U"\u0958", NormalForm::kNfc), U"\u0915\u093c");  // excluded from composition
}

TEST(Normalize, LongRunsOfMarksTakeNLogN) {
  std::u32string text = U"a";
  for (int i = 0; i < 300'000; ++i) text += i % 2 ? U'\u0300' : U'\u0323';
  const std::u32string composed = normalize(text, NormalForm::kNfc);
  EXPECT_EQ(composed.size(), text.size() - 1);
  EXPECT_EQ(composed.front(), U'\u1ea1');
}

TEST(Normalizers, EveryCharacterEqualsTheReferenceLibrary) {
  const auto file = json::parse(*read_file(testing::data_path("tokenizer/unicode_digests.json")), "unicode_digests.json");
  ASSERT_TRUE(file);
  for (const json::Value& entry : file->as_array()) {
    const json::Value& description = entry.as_object().at("normalizer");
    const auto normalizer = JsonNormalizer::parse(&description);
    ASSERT_TRUE(normalizer) << normalizer.error().message;
    std::uint64_t hash = 0xCBF29CE484222325;
    for (char32_t code = 0; code < 0x110000; ++code) {
      if (code >= 0xD800 && code < 0xE000) continue;
      std::string text;
      append_utf8(code, text);
      normalizer->apply(text);
      text += '\n';
      for (char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
    }
    EXPECT_EQ(fmt::format("{:016x}", hash), std::string(entry.as_object().at("fnv1a").as_string())) << description;
  }
}

TEST(Classes, SpacesAndWords) {
  EXPECT_TRUE(is_space(U' ') && is_space(U'\n') && is_space(U'\u0085') && is_space(U'\u3000'));
  EXPECT_FALSE(is_space(U'\u180e') || is_space(U'\u200b'));
  EXPECT_TRUE(is_word(U'\u0301') && is_word(U'_') && is_word(U'\u24b6') && is_word(U'\u200d'));
  EXPECT_FALSE(is_word(U'\u00bd') || is_word(U'-'));
  EXPECT_TRUE(is_regex_word(U'\u00bd'));
}

}  // namespace
}  // namespace weir::tokenizer
