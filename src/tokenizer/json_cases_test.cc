// SPDX-License-Identifier: Apache-2.0
// tokenizer.json: every supported component against what the `tokenizers` library makes of random Unicode text, real files
// against their goldens, and refusals of what is not supported.
#include <gmock/gmock.h>

#include <fstream>

#include "base/file_io.h"
#include "base/testing.h"
#include "tokenizer/tokenizer.h"

namespace weir::tokenizer {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<TokenId> ids_of(const json::Value& list) {
  std::vector<TokenId> ids;
  for (const auto& id : list.as_array()) ids.push_back(static_cast<TokenId>(id.as_int64()));
  return ids;
}

std::string string_of(const json::Value& value) { return std::string(value.as_string()); }

void expect_cases(const json::Object& line) {
  SCOPED_TRACE(string_of(line.at("name")));
  const auto tokenizer = Tokenizer::from_json(boost::json::serialize(line.at("tokenizer")), nullptr, nullptr);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  for (const json::Value& value : line.at("cases").as_array()) {
    const json::Array& c = value.as_array();
    const std::string text = string_of(c[0]);
    EXPECT_THAT((*tokenizer)->encode(text, {.add_special = false, .parse_special = true}), ElementsAreArray(ids_of(c[1]))) << text;
    EXPECT_THAT((*tokenizer)->encode(text, {.add_special = true, .parse_special = true}), ElementsAreArray(ids_of(c[2]))) << text;
    if (!c[3].is_null()) {
      EXPECT_EQ((*tokenizer)->decode(ids_of(c[1]), true), string_of(c[3])) << text;
    }
  }
}

TEST(TokenizerJson, EqualsTheReferenceLibrary) {
  std::ifstream in(testing::data_path("tokenizer/json_cases.jsonl"));
  int tokenizers = 0;
  for (std::string line; std::getline(in, line); ++tokenizers) {
    const auto value = json::parse(line, "json_cases.jsonl");
    ASSERT_TRUE(value);
    expect_cases(value->as_object());
  }
  EXPECT_GE(tokenizers, 40);
}

TEST(TokenizerJson, MiniLmIdsAreEqual) {
  const auto path = testing::cached_path("minilm/tokenizer.json");
  WEIR_REQUIRE_CACHED(path);
  const auto tokenizer = Tokenizer::from_json(*read_file(path), nullptr, nullptr);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto golden = json::parse(*read_file(testing::data_path("minilm/golden.json")), "golden.json");
  ASSERT_TRUE(golden);
  for (const json::Value& c : golden->as_object().at("cases").as_array()) {
    constexpr std::size_t kMost = 256;  // the goldens are cut there: all but the last, then [SEP]
    auto ids = (*tokenizer)->encode(string_of(c.as_object().at("text")));
    if (ids.size() > kMost) ids.erase(ids.begin() + kMost - 1, ids.end() - 1);
    EXPECT_THAT(ids, ElementsAreArray(ids_of(c.as_object().at("ids"))));
  }
}

TEST(TokenizerJson, AgreesWithTheGgufOfTheSameTokenizer) {
  const auto folder = testing::data_path("arch/llama");
  const auto config = json::parse(*read_file(folder / "tokenizer_config.json"), "tokenizer_config.json");
  const auto from_json = Tokenizer::from_json(*read_file(folder / "tokenizer.json"), &config->as_object(), nullptr);
  ASSERT_TRUE(from_json) << from_json.error().message;
  const auto file = formats::GgufFile::open(folder / "model-f32.gguf");
  ASSERT_TRUE(file) << file.error().message;
  const auto from_gguf = Tokenizer::from_gguf(*file);
  ASSERT_TRUE(from_gguf) << from_gguf.error().message;
  const std::string text = *read_file(testing::data_path("wikitext2_test.txt"));
  const std::string start = text.substr(0, 20000) + "<|im_end|> <|bos|>x";
  for (const bool parse_special : {false, true}) {
    const EncodeOptions options{.add_special = true, .parse_special = parse_special};
    EXPECT_EQ((*from_json)->encode(start, options), (*from_gguf)->encode(start, options));
  }
  EXPECT_EQ((*from_json)->vocab_size(), 264);
  EXPECT_EQ((*from_json)->bos, 260);
  EXPECT_EQ((*from_json)->eos, 261);
  EXPECT_EQ((*from_json)->end_of_generation, (*from_gguf)->end_of_generation);
  EXPECT_EQ((*from_json)->decode((*from_json)->encode(start)), (*from_gguf)->decode((*from_gguf)->encode(start)));
}

TEST(TokenizerJson, ConfigurationGivesRolesAndTemplate) {
  const auto config = json::parse(R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "add_bos_token": true,
      "chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]})",
                                  "c");
  const auto model = json::parse(R"({"eos_token_id": [2, 3]})", "m");
  const auto tokenizer = Tokenizer::from_json(R"({"model": {"type": "BPE", "vocab": {"a": 0, "<s>": 1, "</s>": 2, "b": 3}, "merges": []}})",
                                              &config->as_object(), &model->as_object());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->bos, 1);
  EXPECT_EQ((*tokenizer)->eos, 2);
  EXPECT_TRUE((*tokenizer)->add_bos);
  EXPECT_EQ((*tokenizer)->chat_template, "D");
  EXPECT_THAT((*tokenizer)->end_of_generation, ::testing::ElementsAre(2, 3));
  EXPECT_THAT((*tokenizer)->encode("ab"), ::testing::ElementsAre(1, 0, 3));
}

struct Refusal {
  const char* json;
  const char* named;  // in the message
};

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, NamesWhatIsNotSupported) {
  const auto tokenizer = Tokenizer::from_json(GetParam().json, nullptr, nullptr);
  ASSERT_FALSE(tokenizer);
  EXPECT_THAT(tokenizer.error().message, HasSubstr(GetParam().named));
}

#define MODEL R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})"
INSTANTIATE_TEST_SUITE_P(
    Files, Refused,
    ::testing::Values(
        Refusal{R"({})", "model"}, Refusal{R"([])", "tokenizer.json"},
        Refusal{R"({"model": {"type": "Morpheme", "vocab": {}}})", "Morpheme"},
        Refusal{R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}, )" MODEL "}", "Precompiled"},
        Refusal{R"({"normalizer": {"type": "Nmt"}, )" MODEL "}", "Nmt"},
        Refusal{R"({"pre_tokenizer": {"type": "UnicodeScripts"}, )" MODEL "}", "UnicodeScripts"},
        Refusal{R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[a&&[^b]]"}, "behavior": "Isolated"}, )" MODEL "}",
                "intersection"},
        Refusal{R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}, )" MODEL "}",
                "regular expression"},
        Refusal{R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Odd"}, )" MODEL "}", "Odd"},
        Refusal{R"({"decoder": {"type": "CTC"}, )" MODEL "}", "CTC"},
        Refusal{R"({"post_processor": {"type": "Strange"}, )" MODEL "}", "Strange"},
        Refusal{R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}})", "merge 0"},
        Refusal{R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}})", "two tokens"},
        Refusal{R"({"model": {"type": "BPE", "vocab": {"a": 99999999999}, "merges": []}})", "token ids"},
        Refusal{R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>"}})", "end_of_word_suffix"},
        Refusal{R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1}})", "dropout"},
        Refusal{R"({"model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": null}})", "unk_id"},
        Refusal{R"({"model": {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "[UNK]"}})", "[UNK]"},
        Refusal{R"({"added_tokens": [{"id": 1, "content": "x"}], )" MODEL "}", "another token"}));

}  // namespace
}  // namespace weir::tokenizer
