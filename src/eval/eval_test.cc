// SPDX-License-Identifier: Apache-2.0
// The evaluations themselves: they pass on what is right, fail on what is wrong, and refuse what they cannot read.
#include <gtest/gtest.h>

#include "base/file_io.h"
#include "base/testing.h"
#include "engine/loaded_model.h"
#include "eval/golden.h"
#include "eval/perplexity.h"
#include "eval/template_cases.h"
#include "eval/token_cases.h"

namespace weir::eval {
namespace {

using kernels::Activations;

engine::LoadedModel load(const std::filesystem::path& path, Activations activations = Activations::kF32) {
  auto loaded = engine::load_model(path, {.threads = 2, .activations = activations, .isa = ""});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return std::move(*loaded);
}

json::Value read_json(const std::filesystem::path& path) { return json::parse(read_file(path).value(), "test").value(); }

// A golden file changed by `edit`, compared with the model in `folder`.
template <class Edit>
Result<FileReport> run_edited(const std::string& folder, Edit edit) {
  const testing::TemporaryFolder temporary;
  const auto source = testing::data_path("arch/" + folder);
  json::Value golden = read_json(source / "golden.json");
  edit(golden.as_object());
  const auto path = temporary.path() / "golden.json";
  EXPECT_TRUE(write_file_atomically(path, boost::json::serialize(golden)));
  auto loaded = load(source);
  return run_golden(loaded, path, {});
}

json::Object& sequence(json::Object& golden, std::size_t i) { return golden["sequences"].as_array()[i].as_object(); }

TEST(Golden, HoldsForAModelAndItsOwnReference) {
  const auto report = run_edited("llama", [](json::Object&) {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->ok) << to_text(*report);
  EXPECT_EQ(report->format, "architecture");
  EXPECT_EQ(report->cases.size(), 3u);
  EXPECT_EQ(report->summary.at("steps_equal").as_int64(), 48);
}

TEST(Golden, FailsWhenOneLogitIsOff) {
  const auto report = run_edited("llama", [](json::Object& g) {
    auto& logit = sequence(g, 1)["last_logits"].as_array()[5];
    logit = logit.to_number<double>() + 0.01;
  });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->ok);
  EXPECT_TRUE(report->cases[0].ok);
  EXPECT_NEAR(report->cases[1].figures.at("max_logit_error").to_number<double>(), 0.01, 1e-3);
}

TEST(Golden, FailsWhenAGreedyTokenDiffersUnlessItsMarginIsBelowEpsilon) {
  const auto change = [](double margin) {
    return [margin](json::Object& g) {
      auto& s = sequence(g, 2);
      s["greedy"].as_array()[15] = s["greedy"].as_array()[15].as_int64() == 7 ? 8 : 7;
      s["greedy_margin"].as_array()[15] = margin;
    };
  };
  const auto wrong = run_edited("llama", change(0.5));
  ASSERT_TRUE(wrong) << wrong.error().message;
  EXPECT_FALSE(wrong->ok);
  const auto tie = run_edited("llama", change(0.0001));
  ASSERT_TRUE(tie) << tie.error().message;
  EXPECT_TRUE(tie->ok) << to_text(*tie);
}

TEST(Golden, RefusesWhatItCannotRead) {
  EXPECT_FALSE(run_edited("llama", [](json::Object& g) { sequence(g, 0)["ids"].as_array()[0] = 99999; }));
  EXPECT_FALSE(run_edited("llama", [](json::Object& g) { sequence(g, 0)["ids"] = json::Array{}; }));
  EXPECT_FALSE(run_edited("llama", [](json::Object& g) { sequence(g, 1)["logsumexp"].as_array().pop_back(); }));
  EXPECT_FALSE(run_edited("llama", [](json::Object& g) { g["sequences"] = "none"; }));
}

TEST(Golden, ReadsEncodersAndEmbeddings) {
  auto bert = load(testing::data_path("arch/bert"));
  const auto report = run_golden(bert, testing::data_path("arch/bert/golden.json"), {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->ok) << to_text(*report);

  WEIR_REQUIRE_CACHED(testing::cached_path("minilm"));
  auto minilm = load(testing::cached_path("minilm"));
  const auto embeddings = run_golden(minilm, testing::data_path("minilm/golden.json"), {});
  ASSERT_TRUE(embeddings) << embeddings.error().message;
  EXPECT_TRUE(embeddings->ok) << to_text(*embeddings);
}

class SmolLm2 : public ::testing::TestWithParam<Activations> {};

TEST_P(SmolLm2, LogitsAndGreedyRunsMatchTheReference) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  auto loaded = load(testing::smollm2_path(), GetParam());
  for (const char* file : {"smollm2/golden_logits.json", "smollm2/golden_greedy.json"}) {
    const auto report = run_golden(loaded, testing::data_path(file), {.activations = GetParam()});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->ok) << to_text(*report);
  }
}

TEST_P(SmolLm2, PerplexityIsThatOfTheReference) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  auto loaded = load(testing::smollm2_path(), GetParam());
  const auto ids = read_text_ids(loaded, testing::data_path("wikitext2_test.txt"));
  ASSERT_TRUE(ids);
  const auto result = measure_perplexity(loaded, *ids, {.windows = 4});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->scored_tokens, 1020);
  const double reference = read_json(testing::data_path("smollm2/golden_ppl.json")).at("llama_cpp_style").at("ppl").as_double();
  EXPECT_NEAR(result->perplexity / reference, 1, GetParam() == Activations::kInt8 ? 0.005 : 0.0005);
}

INSTANTIATE_TEST_SUITE_P(Activations, SmolLm2, ::testing::Values(Activations::kInt8, Activations::kF32),
                         [](const auto& info) { return info.param == Activations::kInt8 ? "Int8" : "Float"; });

TEST(Perplexity, RefusesATextShorterThanAWindow) {
  auto loaded = load(testing::data_path("arch/llama"));
  const std::vector<TokenId> ids(10, 1);
  EXPECT_EQ(measure_perplexity(loaded, ids, {.context = 16}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(measure_perplexity(loaded, ids, {.context = 2}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(measure_perplexity(loaded, ids, {.context = 8})->scored_tokens, 3);
  EXPECT_EQ(measure_perplexity(loaded, ids, {.context = 8, .score_all = true})->scored_tokens, 7);
}

TEST(TemplateCases, HoldForTheLanguageCasesAndFailOnAWrongText) {
  const auto report = run_template_cases(testing::data_path("chat/cases_jinja.json"), {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->ok) << to_text(*report);

  const testing::TemporaryFolder temporary;
  const auto path = temporary.path() / "cases.json";
  ASSERT_TRUE(write_file_atomically(path, R"([{"id": "a", "template": "{{ x }}", "context": {"x": 1}, "expected": "2"},
    {"id": "b", "template": "gone", "context": {}, "expected": "gone"}, {"id": "c", "template": "{{ raise_exception('no') }}",
    "context": {}, "expected_error": "no"}, {"id": "d", "template": "fine", "context": {}, "expected_error": "no"}])"));
  const auto wrong = run_template_cases(path, {});
  ASSERT_TRUE(wrong) << wrong.error().message;
  ASSERT_EQ(wrong->cases.size(), 4u);
  EXPECT_FALSE(wrong->cases[0].ok);
  EXPECT_TRUE(wrong->cases[1].ok);
  EXPECT_TRUE(wrong->cases[2].ok);
  EXPECT_FALSE(wrong->cases[3].ok);
}

TEST(TokenCases, HoldForTheVectorsAndFailOnAWrongId) {
  const auto tokenizer = engine::load_tokenizer(testing::data_path("arch/llama"));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto ids = (*tokenizer)->encode("abc", {.add_special = false});
  ASSERT_FALSE(ids.empty());
  const testing::TemporaryFolder temporary;
  const auto path = temporary.path() / "cases.jsonl";
  std::string line = "{\"text\": \"abc\", \"ids\": [";
  for (std::size_t i = 0; i < ids.size(); ++i) line += (i ? "," : "") + std::to_string(ids[i]);
  ASSERT_TRUE(write_file_atomically(path, line + "]}\n\n{\"text\": \"abc\", \"ids_plain\": [0, 0, 0, 0]}\n"));
  const auto report = run_token_cases(**tokenizer, path, false);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->cases.size(), 2u);
  EXPECT_TRUE(report->cases[0].ok) << report->cases[0].detail;
  EXPECT_FALSE(report->cases[1].ok);
  ASSERT_TRUE(write_file_atomically(path, "{\"text\": \"abc\"}"));
  EXPECT_FALSE(run_token_cases(**tokenizer, path, false));
}

}  // namespace
}  // namespace weir::eval
