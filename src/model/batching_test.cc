// SPDX-License-Identifier: Apache-2.0
// Design invariant 1, bit by bit: a row's logits do not depend on how its prompt was cut, on what else is in the batch, or
// on the number of threads. For every architecture, and for the real model with int8 activations.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing.h"
#include "model/test_sequences.h"

namespace weir::model::testing {
namespace {

using kernels::Activations;

std::vector<TokenId> prompt_of(std::int32_t length, std::int32_t vocabulary, std::uint32_t seed) {
  std::vector<TokenId> out;
  std::uint32_t x = seed * 2654435761u + 1;
  for (std::int32_t i = 0; i < length; ++i) {
    x = x * 1664525u + 1013904223u;
    out.push_back(static_cast<TokenId>((x >> 8) % static_cast<std::uint32_t>(vocabulary)));
  }
  return out;
}

std::vector<Row> whole(Model& model, const std::vector<TokenId>& prompt) {
  const auto length = static_cast<std::int32_t>(prompt.size());
  auto rows = TestSequences(model, 1, length, length).feed({{0, prompt}});
  EXPECT_TRUE(rows.has_value()) << rows.error().message;
  return rows.value_or(std::vector<Row>());
}

std::vector<Row> chunked(Model& model, const std::vector<TokenId>& prompt, std::size_t chunk) {
  const auto length = static_cast<std::int32_t>(prompt.size());
  auto rows = TestSequences(model, 1, length, length).feed_chunks(0, prompt, chunk);
  EXPECT_TRUE(rows.has_value()) << rows.error().message;
  return rows.value_or(std::vector<Row>());
}

// The prompt among seven others: some are whole prompts, some already decode a token at a time.
std::vector<Row> among_others(Model& model, const std::vector<TokenId>& prompt) {
  const auto length = static_cast<std::int32_t>(prompt.size()), vocabulary = model.traits().vocab_size;
  TestSequences run(model, 8, length + 8, length);
  std::vector<Piece> first, mixed;
  std::size_t before = 0;
  for (std::int32_t s = 0; s < 8; ++s) {
    if (s == 3) {
      mixed.push_back({s, prompt});
      continue;
    }
    const bool decodes = s % 2 == 1 && !model.traits().encoder;
    const auto other = prompt_of(s == 6 ? length : 1 + s * 2, vocabulary, static_cast<std::uint32_t>(s) + 77);
    if (decodes) first.push_back({s, other});
    mixed.push_back({s, decodes ? std::vector<TokenId>{other.front()} : other});
    if (s < 3) before += mixed.back().tokens.size();
  }
  EXPECT_TRUE(first.empty() || run.feed(first).has_value());
  auto rows = run.feed(mixed);
  EXPECT_TRUE(rows.has_value()) << rows.error().message;
  if (!rows) return {};
  const auto begin = rows->begin() + static_cast<std::ptrdiff_t>(before);
  return {begin, begin + length};
}

void expect_invariant(const std::filesystem::path& path, Activations activations, std::int32_t length) {
  std::vector<Row> expected;
  for (int threads : {1, 2, 3}) {
    SCOPED_TRACE(fmt::format("{} threads", threads));
    auto model = load(path, activations, threads);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const auto prompt = prompt_of(length, (*model)->traits().vocab_size, 5);
    if (expected.empty()) expected = whole(**model, prompt);
    ASSERT_EQ(expected.size(), prompt.size());
    for (float x : expected.back()) ASSERT_TRUE(std::isfinite(x));
    EXPECT_TRUE(whole(**model, prompt) == expected) << "whole";
    EXPECT_TRUE(among_others(**model, prompt) == expected) << "in a batch of 8";
    if ((*model)->traits().encoder) continue;
    EXPECT_TRUE(chunked(**model, prompt, 7) == expected) << "chunks of 7";
    EXPECT_TRUE(chunked(**model, prompt, 1) == expected) << "one by one";
  }
}

std::vector<std::string> architectures() {
  std::vector<std::string> names;
  for (const auto& folder : std::filesystem::directory_iterator(weir::testing::data_path("arch"))) {
    if (folder.is_directory()) names.push_back(folder.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

class Batching : public ::testing::TestWithParam<std::string> {};

TEST_P(Batching, RowsDependOnTheirSequenceAlone) {
  expect_invariant(weir::testing::data_path("arch/" + GetParam()), Activations::kF32, 45);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Batching, ::testing::ValuesIn(architectures()), [](const auto& info) { return info.param; });

TEST(BatchingOfQuantised, Mxfp4ExpertsWithInt8Activations) {
  expect_invariant(weir::testing::data_path("arch/gpt_oss_mxfp4/model-mxfp4.gguf"), Activations::kInt8, 45);
}

TEST(BatchingOfQuantised, SmolLm2WithInt8Activations) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  expect_invariant(weir::testing::smollm2_path(), Activations::kInt8, 23);
}

}  // namespace
}  // namespace weir::model::testing
