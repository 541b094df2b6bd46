// SPDX-License-Identifier: Apache-2.0
// The reference vectors: ids of SmolLM2 and of other families' vocabularies, all equal.
#include <gmock/gmock.h>

#include <fstream>

#include "base/file_io.h"
#include "base/json.h"
#include "base/testing.h"
#include "tokenizer/tokenizer.h"

namespace weir::tokenizer {
namespace {

using ::testing::ElementsAreArray;

std::shared_ptr<const Tokenizer> load_gguf(const std::filesystem::path& path) {
  auto file = formats::GgufFile::open(path);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (!file) return nullptr;
  auto tokenizer = Tokenizer::from_gguf(*file);
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message);
  return tokenizer ? *tokenizer : nullptr;
}

std::vector<TokenId> ids_of(const json::Value& list) {
  std::vector<TokenId> ids;
  for (const auto& id : list.as_array()) ids.push_back(static_cast<TokenId>(id.as_int64()));
  return ids;
}

struct Case {
  std::string text;
  std::vector<TokenId> plain, special;
  bool roundtrip = false;
};

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::vector<Case> cases;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto value = json::parse(line, path.string());
    EXPECT_TRUE(value) << path;
    if (!value) break;
    const json::Object& object = value->as_object();
    const json::Value* roundtrip = object.if_contains("roundtrip");
    cases.push_back({std::string(object.at("text").as_string()), ids_of(object.at("ids_plain")), ids_of(object.at("ids_special")),
                     roundtrip && roundtrip->as_bool()});
  }
  EXPECT_FALSE(cases.empty()) << path;
  return cases;
}

void expect_all_equal(const Tokenizer& tokenizer, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_THAT(tokenizer.encode(c.text, {.add_special = false, .parse_special = false}), ElementsAreArray(c.plain)) << c.text;
    EXPECT_THAT(tokenizer.encode(c.text, {.add_special = false, .parse_special = true}), ElementsAreArray(c.special)) << c.text;
  }
}

TEST(Vectors, SmolLm2IdsAreEqualAndDecodeToTheText) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const auto tokenizer = load_gguf(testing::smollm2_path());
  ASSERT_TRUE(tokenizer);
  const auto cases = read_cases(testing::data_path("tokenizer/smollm2.jsonl"));
  ASSERT_EQ(cases.size(), 161u);
  expect_all_equal(*tokenizer, cases);
  for (const Case& c : cases) {
    if (!c.roundtrip) continue;
    EXPECT_EQ(tokenizer->decode(c.plain), c.text);
    StreamDecoder stream(tokenizer);
    std::string streamed;
    for (TokenId id : c.plain) streamed += stream.push(id);
    EXPECT_EQ(streamed + stream.finish(), c.text);
  }
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_EQ(tokenizer->token_text(*tokenizer->eos), "<|im_end|>");
  EXPECT_EQ(tokenizer->add_bos, false);
  EXPECT_THAT(tokenizer->end_of_generation, ::testing::Contains(*tokenizer->eos));
}

class Family : public ::testing::TestWithParam<const char*> {};

TEST_P(Family, IdsAreEqual) {
  const auto path = testing::cached_path("vocabs/ggml-vocab-" + std::string(GetParam()) + ".gguf");
  WEIR_REQUIRE_CACHED(path);
  const auto tokenizer = load_gguf(path);
  ASSERT_TRUE(tokenizer);
  expect_all_equal(*tokenizer, read_cases(testing::data_path("tokenizer/families/" + std::string(GetParam()) + ".jsonl")));
}

INSTANTIATE_TEST_SUITE_P(Families, Family,
                         ::testing::Values("bert-bge", "deepseek-llm", "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2"));

// llama.cpp publishes 46 texts beside its vocabularies, with the ids that their authors' tokenizers give.
class Published : public ::testing::TestWithParam<const char*> {};

TEST_P(Published, IdsAreEqual) {
  const auto path = testing::cached_path("vocabs/ggml-vocab-" + std::string(GetParam()) + ".gguf");
  WEIR_REQUIRE_CACHED(path);
  const auto tokenizer = load_gguf(path);
  ASSERT_TRUE(tokenizer);
  const auto texts = read_file(path.string() + ".inp"), ids = read_file(path.string() + ".out");
  ASSERT_TRUE(texts && ids);
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  std::string_view rest = *texts;
  std::istringstream lines(*ids);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const std::size_t end = rest.find(kBetween);
    const std::string_view text = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + kBetween.size());
    std::istringstream numbers(line);
    const std::vector<TokenId> expected{std::istream_iterator<TokenId>(numbers), {}};
    EXPECT_THAT(tokenizer->encode(text, {.add_special = false, .parse_special = false}), ElementsAreArray(expected)) << text;
  }
  EXPECT_GE(count, 46);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Published,
                         ::testing::Values("bert-bge", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2",
                                           "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35", "refact", "starcoder"));

}  // namespace
}  // namespace weir::tokenizer
