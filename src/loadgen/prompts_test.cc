// SPDX-License-Identifier: Apache-2.0
#include "loadgen/prompts.h"

#include <gtest/gtest.h>

#include "base/testing.h"

namespace weir::loadgen {
namespace {

// The text of a turn's one message.
std::string text_of(const Turn& turn) {
  const json::Value value = *json::parse(turn.content, "turn");
  return std::string(value.is_string() ? value.get_string() : value.at("content").as_string());
}

std::size_t common_prefix(const std::string& a, const std::string& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

PromptOptions lengths(const char* input, const char* output = "7") {
  PromptOptions options;
  options.count = 30;
  options.input_tokens = *Distribution::parse(input, Distribution::Unit::kPlain);
  options.output_tokens = *Distribution::parse(output, Distribution::Unit::kPlain);
  return options;
}

TEST(Prompts, ExactTokenCountsWithTheModelsTokenizer) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const auto tokenizer = load_tokenizer(testing::smollm2_path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const Vocabulary vocabulary(*tokenizer);
  PromptOptions options = lengths("uniform:1,700");
  options.shared_prefix = 0.5;
  const auto conversations = synthetic_prompts(options, vocabulary);
  ASSERT_TRUE(conversations);
  for (const Conversation& c : *conversations) {
    ASSERT_EQ(c.turns.size(), 1u);
    EXPECT_EQ((*tokenizer)->encode(text_of(c.turns[0]), {.add_special = false}).size(), static_cast<std::size_t>(c.turns[0].prompt_tokens));
    EXPECT_EQ(c.turns[0].max_tokens, 7);
  }
}

TEST(Prompts, ASharedPrefixOfTheGivenShare) {
  const Vocabulary vocabulary(nullptr);
  PromptOptions options = lengths("200");
  options.shared_prefix = 0.75;
  options.prefix_groups = 2;
  const auto all = *synthetic_prompts(options, vocabulary);
  const auto shared_words = [&](std::size_t a, std::size_t b) {
    const std::string x = text_of(all[a].turns[0]), y = text_of(all[b].turns[0]);
    return vocabulary.count(x.substr(0, common_prefix(x, y)));
  };
  EXPECT_GE(shared_words(0, 2), 150);
  EXPECT_LE(shared_words(0, 2), 153);  // by chance one or two more words are equal
  EXPECT_LE(shared_words(0, 1), 3);    // another group
  options.shared_prefix = 0;
  const auto none = *synthetic_prompts(options, vocabulary);
  EXPECT_LE(common_prefix(text_of(none[0].turns[0]), text_of(none[2].turns[0])), 20u);
}

TEST(Prompts, SameSeedSamePromptsOtherSeedOthers) {
  const Vocabulary vocabulary(nullptr);
  PromptOptions options = lengths("lognormal:50,30", "normal:20,5");
  const auto a = *synthetic_prompts(options, vocabulary), b = *synthetic_prompts(options, vocabulary);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].turns[0].content, b[i].turns[0].content);
  options.seed = 2;
  EXPECT_NE((*synthetic_prompts(options, vocabulary))[0].turns[0].content, a[0].turns[0].content);
}

TEST(Prompts, TracesShareWhatTheirBlocksShare) {
  const Vocabulary vocabulary(nullptr);
  Trace trace;
  trace.block_tokens = 16;
  trace.entries = {{.at = {}, .input_tokens = 40, .output_tokens = 5, .prefix_blocks = {1, 2, 3}},
                   {.at = {}, .input_tokens = 40, .output_tokens = 6, .prefix_blocks = {1, 2, 9}},
                   {.at = {}, .input_tokens = 12, .output_tokens = 0, .prefix_blocks = {}}};
  const auto all = trace_prompts(trace, {}, vocabulary);
  const std::string a = text_of(all[0].turns[0]), b = text_of(all[1].turns[0]);
  EXPECT_EQ(vocabulary.count(a), 40);
  const auto shared = vocabulary.count(a.substr(0, common_prefix(a, b)));
  EXPECT_GE(shared, 32);
  EXPECT_LE(shared, 35);
  EXPECT_EQ(all[1].turns[0].max_tokens, 6);
  EXPECT_EQ(vocabulary.count(text_of(all[2].turns[0])), 12);
}

TEST(Prompts, PiecesOfATextDoNotGoOver) {
  const Vocabulary vocabulary(nullptr);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("w{}{}", i, i % 7 ? " " : "\n");
  const auto pieces = *text_prompts(text, lengths("uniform:5,90"), vocabulary);
  for (const Conversation& c : pieces) {
    EXPECT_EQ(c.turns[0].prompt_tokens, vocabulary.count(text_of(c.turns[0])));
    EXPECT_LE(c.turns[0].prompt_tokens, 90);
    EXPECT_NE(text.find(text_of(c.turns[0])), std::string::npos);
  }
  EXPECT_EQ(text_of((*text_prompts("short", lengths("500"), vocabulary))[0].turns[0]), "short");
  EXPECT_FALSE(text_prompts(" \n ", lengths("5"), vocabulary));
}

TEST(Prompts, Jsonl) {
  const auto all = jsonl_prompts(
      "{\"prompt\":\"say "
      "\\\"hi\\\"\",\"max_tokens\":3}\n\n{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"}]}"
      "\n\"bare\"\n",
      lengths("1"));
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ(text_of((*all)[0].turns[0]), "say \"hi\"");
  EXPECT_EQ((*all)[0].turns[0].max_tokens, 3);
  EXPECT_EQ((*all)[1].turns[0].content, R"({"role":"system","content":"s"},{"role":"user","content":"u"})");
  EXPECT_EQ((*all)[1].turns[0].max_tokens, 7);
  for (const char* bad : {"", "{}", "{\"prompt\":5}", "{\"messages\":[]}", "{\"prompt\":\"x\",\"max_tokens\":-1}", "[1]", "nonsense"})
    EXPECT_FALSE(jsonl_prompts(bad, lengths("1"))) << bad;
}

TEST(Prompts, ShareGpt) {
  const std::string file = R"([{"id":"1","conversations":[{"from":"human","value":"first question"},{"from":"gpt","value":"a b c d"},
      {"from":"human","value":"second"},{"from":"gpt","value":"e f"}]},{"conversations":[{"from":"gpt","value":"starts oddly"}]}])";
  const Vocabulary vocabulary(nullptr);
  PromptOptions options = lengths("1");
  options.turns = Distribution::constant(10);
  const auto all = sharegpt_prompts(file, options, vocabulary);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 1u);  // the other has no human
  ASSERT_EQ((*all)[0].turns.size(), 2u);
  EXPECT_EQ((*all)[0].turns[0].max_tokens, 4);
  EXPECT_EQ(text_of((*all)[0].turns[1]), "second");
  options.turns = Distribution::constant(1);
  EXPECT_EQ((*sharegpt_prompts(file, options, vocabulary))[0].turns.size(), 1u);
  for (const char* bad : {"", "{}", "[]", "[{\"conversations\":5}]", "[7]", "[{\"conversations\":[{\"from\":7}]}]"})
    EXPECT_FALSE(sharegpt_prompts(bad, options, vocabulary)) << bad;
}

TEST(Prompts, RefusesTooMuch) {
  PromptOptions options = lengths("1000000");
  options.count = 1000000;
  EXPECT_FALSE(synthetic_prompts(options, Vocabulary(nullptr)));
  options = lengths("5");
  options.chat = false;
  options.turns = Distribution::constant(3);
  EXPECT_FALSE(synthetic_prompts(options, Vocabulary(nullptr)));
}

TEST(RequestBodies, AreValidJsonOfTheAnnouncedSize) {
  RequestShape shape{.chat = true, .stream = true, .model = "a\"b", .ignore_eos = true, .timings = true, .extra = {{"temperature", 0}}};
  const BodyWriter writer(shape);
  std::string body;
  writer.append(body, message("user", "x"), 12);
  EXPECT_EQ(body.size(), writer.size(message("user", "x"), 12));
  const json::Value value = *json::parse(body, "body");
  EXPECT_EQ(value.at("model").as_string(), "a\"b");
  EXPECT_EQ(value.at("max_tokens").as_int64(), 12);
  EXPECT_EQ(value.at("messages").at(0).at("content").as_string(), "x");
  EXPECT_TRUE(value.at("stream_options").at("include_usage").as_bool() && value.at("ignore_eos").as_bool());
  EXPECT_EQ(value.at("temperature").as_int64(), 0);
}

}  // namespace
}  // namespace weir::loadgen
