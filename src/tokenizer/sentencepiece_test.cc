// SPDX-License-Identifier: Apache-2.0
// GGUF's "llama" and "t5" models against the `sentencepiece` library, on small models built here; and Unigram, Charsmap and
// WordPiece alone.
#include <gmock/gmock.h>

#include <fstream>

#include "base/testing.h"
#include "formats/gguf_writer.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unigram.h"
#include "tokenizer/wordpiece.h"

namespace weir::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<std::int64_t> integers_of(const json::Value& list) {
  std::vector<std::int64_t> values;
  for (const auto& value : list.as_array()) values.push_back(value.as_int64());
  return values;
}

std::vector<std::uint64_t> bytes_of_hex(std::string_view hex) {
  std::vector<std::uint64_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes.push_back(std::stoul(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

formats::GgufFile gguf_of(const json::Object& line) {
  using formats::GgufType;
  formats::GgufWriter writer;
  std::vector<std::string> tokens;
  for (const auto& token : line.at("tokens").as_array()) tokens.emplace_back(token.as_string());
  std::vector<double> scores;
  for (const auto& score : line.at("scores").as_array()) scores.push_back(score.to_number<double>());
  const auto add = [&](formats::GgufEntry entry) { EXPECT_TRUE(writer.add(std::move(entry))); };
  add(formats::gguf_string("general.architecture", "llama"));
  add(formats::gguf_string("tokenizer.ggml.model", std::string(line.at("model").as_string())));
  add(formats::gguf_array("tokenizer.ggml.tokens", GgufType::kString, tokens));
  add(formats::gguf_array("tokenizer.ggml.scores", GgufType::kF32, scores));
  add(formats::gguf_array("tokenizer.ggml.token_type", GgufType::kI32, integers_of(line.at("types"))));
  add(formats::gguf_u32("tokenizer.ggml.unknown_token_id", 0));
  for (const char* name : {"add_space_prefix", "remove_extra_whitespaces"}) {
    add(formats::gguf_bool("tokenizer.ggml." + std::string(name), line.at(name).as_bool()));
  }
  const auto charsmap = bytes_of_hex(line.at("charsmap").as_string());
  if (!charsmap.empty()) add(formats::gguf_array("tokenizer.ggml.precompiled_charsmap", GgufType::kU8, charsmap));
  const auto bytes = writer.to_bytes();
  EXPECT_TRUE(bytes);
  auto file = formats::GgufFile::parse(std::as_bytes(std::span(*bytes)), "a test");
  EXPECT_TRUE(file) << file.error().message;
  return std::move(*file);
}

TEST(SentencePiece, EqualsTheReferenceLibrary) {
  std::ifstream in(testing::data_path("tokenizer/sentencepiece_cases.jsonl"));
  int models = 0;
  for (std::string text; std::getline(in, text); ++models) {
    const auto value = json::parse(text, "sentencepiece_cases.jsonl");
    ASSERT_TRUE(value);
    const json::Object& line = value->as_object();
    SCOPED_TRACE(std::string(line.at("name").as_string()));
    const auto tokenizer = Tokenizer::from_gguf(gguf_of(line));
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    for (const auto& c : line.at("cases").as_array()) {
      const std::string input(c.as_array()[0].as_string());
      EXPECT_THAT((*tokenizer)->encode(input, {.add_special = false}), ElementsAreArray(integers_of(c.as_array()[1]))) << input;
    }
  }
  EXPECT_EQ(models, 6);
}

Vocabulary vocabulary_of(std::initializer_list<const char*> tokens) {
  Vocabulary vocabulary;
  for (const char* token : tokens) vocabulary.add(token, 0, TokenKind::kNormal);
  return vocabulary;
}

TEST(Unigram, TakesTheBestPathAndFusesUnknowns) {
  const Vocabulary vocabulary = vocabulary_of({"<unk>", "a", "b", "ab", "abb"});
  const Unigram model(vocabulary, {{1, -1.0}, {2, -1.0}, {3, -1.5}, {4, -4.0}}, -4.0, 0, false);
  Unigram::Lattice lattice;
  std::vector<TokenId> ids;
  model.encode("abb", lattice, ids);
  EXPECT_THAT(ids, ElementsAre(3, 2));  // -2.5 against -3 and -4
  ids.clear();
  model.encode("xyab中", lattice, ids);
  EXPECT_THAT(ids, ElementsAre(0, 3, 0));
}

TEST(WordPiece, IsGreedyAndAllOrNothing) {
  const Vocabulary vocabulary = vocabulary_of({"[UNK]", "un", "##aff", "##able", "##ab", "##l"});
  const WordPiece model(vocabulary, {.start_mark = "", .continuation_mark = "##", .unknown = 0, .max_characters = 10});
  std::vector<TokenId> ids;
  for (const char* word : {"unaffable", "unaffabl", "unx", "unununununun"}) model.encode(word, ids);
  EXPECT_THAT(ids, ElementsAre(1, 2, 3, 1, 2, 4, 5, 0, 0));
}

TEST(Charsmap, RefusesPartsThatDoNotFit) {
  EXPECT_FALSE(Charsmap::parse("abc"));
  EXPECT_FALSE(Charsmap::parse(std::string_view("\x08\x00\x00\x00\x01", 5)));
  EXPECT_FALSE(Charsmap::parse(std::string_view("\x04\x00\x00\x00\x01\x00\x00\x00x", 9)));
  EXPECT_TRUE(Charsmap::parse(std::string_view("\x04\x00\x00\x00\x01\x00\x00\x00x\x00", 10)));
}

}  // namespace
}  // namespace weir::tokenizer
