// SPDX-License-Identifier: Apache-2.0
// Real models against their references, with float activations: SmolLM2's logits (the shorter golden sequences; `weir eval
// golden` runs all of them) and MiniLM's sentence embeddings. Skipped where the files have not been fetched.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file_io.h"
#include "base/testing.h"
#include "model/test_sequences.h"

namespace weir::model::testing {
namespace {

json::Value read_golden(std::string_view path) {
  auto text = read_file(weir::testing::data_path(path));
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return text ? json::parse(*text, path).value_or(nullptr) : nullptr;
}

TEST(SmolLm2, LogitsAreWithinAThousandthOfTheReference) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  auto model = load(weir::testing::smollm2_path(), kernels::Activations::kF32, 0);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  int compared = 0;
  const json::Value file = read_golden("smollm2/golden_logits.json");
  for (const json::Value& golden : file.at("sequences").as_array()) {
    const auto prompt = ids(golden.at("ids"));
    if (prompt.size() > 60) continue;
    SCOPED_TRACE(std::string(golden.at("name").as_string()));
    auto rows = TestSequences(**model, 1, static_cast<std::int32_t>(prompt.size())).feed({{0, prompt}});
    ASSERT_TRUE(rows.has_value()) << rows.error().message;
    const auto best = ids(golden.at("argmax_all"));
    ASSERT_EQ(best.size(), rows->size());
    for (std::size_t i = 0; i < best.size(); ++i) EXPECT_EQ(argmax((*rows)[i]), best[i]) << "position " << i;
    for (const json::Value& position : golden.at("positions").as_array()) {
      const Row& row = (*rows)[position.at("pos").to_number<std::size_t>()];
      EXPECT_LE(distance(logsumexp(row), position.at("logsumexp").to_number<double>()), 1e-3);
      for (const json::Value& entry : position.at("top50").as_array()) {
        const auto id = entry.at(0).to_number<std::size_t>();
        EXPECT_LE(distance(row[id], entry.at(1).to_number<double>()), 1e-3) << "token " << id;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 6 * 50);
}

TEST(MiniLm, MeanEmbeddingsEqualTheReference) {
  const auto path = weir::testing::cached_path("minilm");
  WEIR_REQUIRE_CACHED(path);
  auto model = load(path, kernels::Activations::kF32, 0);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const json::Value file = read_golden("minilm/golden.json");
  for (const json::Value& golden : file.at("cases").as_array()) {
    const auto prompt = ids(golden.at("ids"));
    const auto expected = doubles(golden.at("embedding"));
    auto rows = TestSequences(**model, 1, static_cast<std::int32_t>(prompt.size())).feed({{0, prompt}});
    ASSERT_TRUE(rows.has_value()) << rows.error().message;
    std::vector<double> sum(expected.size());
    for (const Row& row : *rows) {
      ASSERT_EQ(row.size(), sum.size());
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += row[c];
    }
    double dot = 0, squares = 0, expected_squares = 0;
    for (std::size_t c = 0; c < sum.size(); ++c) {
      dot += sum[c] * expected[c];
      squares += sum[c] * sum[c];
      expected_squares += expected[c] * expected[c];
    }
    EXPECT_GE(dot / std::sqrt(squares * expected_squares), 0.99999) << golden.at("text");
  }
}

}  // namespace
}  // namespace weir::model::testing
