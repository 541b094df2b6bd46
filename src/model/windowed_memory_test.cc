// SPDX-License-Identifier: Apache-2.0
// Sliding windows with a table for each group of layers: what no row can see any more is given back, written over and used again by
// another sequence, and no logit changes by a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/testing.h"
#include "model/test_sequences.h"

namespace weir::model::testing {
namespace {

using kernels::Activations;

LayerTraits attention(std::int32_t window) { return {.mixer = MixerKind::kAttention, .window = window}; }

Traits windowed(std::initializer_list<std::int32_t> windows) {
  Traits t;
  t.hidden = 8;
  t.attention = {.heads = 2, .kv_heads = 1, .head_dim = 16, .value_dim = 16};
  for (const std::int32_t window : windows) t.layers.push_back(attention(window));
  return t;
}

TEST(KvGroups, LayersThatSeeAllComeFirstThenEachWindow) {
  Traits t = windowed({64, 0, 16, 64});
  t.layers.push_back({.mixer = MixerKind::kMamba2});
  const auto groups = kv_groups(t);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].window, 0);
  EXPECT_EQ(groups[0].layers, std::vector<std::int32_t>{1});
  EXPECT_EQ(groups[1].window, 16);
  EXPECT_EQ(groups[1].layers, std::vector<std::int32_t>{2});
  EXPECT_EQ(groups[2].window, 64);
  EXPECT_EQ(groups[2].layers, (std::vector<std::int32_t>{0, 3}));
}

TEST(KvGroups, AreFewHoweverManyWindowsThereAre) {
  Traits t = windowed({});
  for (std::int32_t window = 1; window <= 100; ++window) t.layers.push_back(attention(window));
  const auto groups = kv_groups(t);
  ASSERT_EQ(groups.size(), kMostKvGroups);
  EXPECT_EQ(groups[0].window, 0);
  EXPECT_EQ(groups[0].layers.size(), 93u);
  EXPECT_EQ(groups[7].window, 7);
}

TEST(KvGroups, AnEncoderHasOneAndARecurrentModelNone) {
  Traits encoder = windowed({16, 0});
  encoder.attention.causal = false;
  EXPECT_EQ(kv_groups(encoder).size(), 1u);
  Traits recurrent;
  recurrent.layers = {{.mixer = MixerKind::kShortConv}};
  EXPECT_TRUE(kv_groups(recurrent).empty());
}

TEST(KvGroups, OneTableOfWindowedLayersSeesAsFarAsTheWidest) {
  EXPECT_EQ(SequenceMemory(windowed({16, 64}), 4, 16, 0, DType::kF32).window(0), 64);
  EXPECT_EQ(SequenceMemory(windowed({16, 0}), 4, 16, 0, DType::kF32).window(0), 0);
}

TEST(KvGroups, EachHasItsOwnNumberOfBlocks) {
  const Traits t = windowed({0, 16, 16});
  const SequenceMemory memory(t, {.blocks = {7, 3}, .block_tokens = 16, .kv_type = DType::kF32});
  ASSERT_TRUE(memory.status().has_value());
  EXPECT_EQ(memory.groups(), 2);
  EXPECT_EQ(memory.blocks(0), 7);
  EXPECT_EQ(memory.blocks(1), 3);
  EXPECT_EQ(memory.group_of(0), 0);
  EXPECT_EQ(memory.group_of(2), 1);
  const std::uint64_t row = 2 * 16 * sizeof(float);
  EXPECT_EQ(memory.bytes(), (7 * 1 + 3 * 2) * 16 * row);
  const SequenceMemory wrong(t, {.blocks = {7, 3, 1}, .block_tokens = 16, .kv_type = DType::kF32});
  ASSERT_FALSE(wrong.status().has_value());
  EXPECT_EQ(wrong.status().error().code, ErrorCode::kInvalidArgument);
}

// Two sequences that grow together from pools which hold just what they see. Blocks that are given back are filled with what is no
// number.
class Windowed {
 public:
  Windowed(Model& model, std::int32_t capacity, std::int32_t step_rows, std::int32_t block_tokens, DType kv_type)
      : model_(model), block_tokens_(block_tokens) {
    MemorySizes sizes{.blocks = {}, .block_tokens = block_tokens, .state_slots = model.traits().has_state() ? 2 : 0, .kv_type = kv_type};
    for (const KvGroup& group : kv_groups(model.traits())) {
      const std::int32_t all = up(capacity);
      const std::int32_t each = group.window > 0 ? std::min(all, up(group.window - 1 + step_rows) + 1) : all;
      sizes.blocks.push_back(2 * each);
      std::vector<BlockId>& free = free_.emplace_back();
      for (std::int32_t b = 2 * each; b-- > 0;) free.emplace_back(b);
    }
    memory_ = std::make_unique<SequenceMemory>(model.traits(), sizes);
    for (auto& tables : tables_) tables.resize(sizes.blocks.size());
  }

  // The same tokens to both; the rows of the second.
  Result<std::vector<Row>> feed(std::span<const TokenId> tokens) {
    const auto count = static_cast<std::int32_t>(tokens.size());
    std::vector<TokenId> all(tokens.begin(), tokens.end());
    all.insert(all.end(), tokens.begin(), tokens.end());
    std::vector<kernels::SequenceSlice> slices;
    std::vector<std::span<const BlockId>> further;
    for (std::int32_t s = 0; s < 2; ++s) {
      auto& tables = tables_[static_cast<std::size_t>(s)];
      grow(tables, length_ + count);
      const auto own = tables.empty() ? std::span<const BlockId>() : std::span<const BlockId>(tables[0]);
      slices.push_back({s * count, count, length_, 0, own, StateSlot(s)});
      for (std::size_t g = 1; g < tables.size(); ++g) further.push_back(tables[g]);
    }
    std::vector<std::int32_t> outputs;
    for (std::int32_t i = 0; i < count; ++i) outputs.push_back(count + i);
    const std::int64_t width = model_.traits().vocab_size;
    std::vector<float> out(tokens.size() * static_cast<std::size_t>(width));
    WEIR_TRY(model_.forward({.tokens = all, .slices = slices, .output_rows = outputs, .token_types = {}, .tables = further}, *memory_,
                            {out.data(), count, width}));
    length_ += count;
    for (auto& tables : tables_) give_back(tables);
    std::vector<Row> rows;
    for (auto row = out.begin(); row != out.end(); row += width) rows.emplace_back(row, row + width);
    return rows;
  }

  std::vector<Row> feed_chunks(const std::vector<TokenId>& tokens, std::size_t chunk) {
    std::vector<Row> all;
    for (std::size_t i = 0; i < tokens.size(); i += chunk) {
      auto rows = feed(std::span(tokens).subspan(i, std::min(chunk, tokens.size() - i)));
      EXPECT_TRUE(rows.has_value()) << rows.error().message;
      if (!rows) return all;
      all.insert(all.end(), rows->begin(), rows->end());
    }
    return all;
  }

  const SequenceMemory& memory() const { return *memory_; }
  std::int64_t given_back() const { return given_back_; }

 private:
  using Tables = std::vector<std::vector<BlockId>>;
  std::int32_t up(std::int32_t tokens) const { return (tokens + block_tokens_ - 1) / block_tokens_; }

  void grow(Tables& tables, std::int32_t end) {
    for (std::size_t g = 0; g < tables.size(); ++g) {
      while (static_cast<std::int32_t>(tables[g].size()) < up(end)) {
        ASSERT_FALSE(free_[g].empty()) << "group " << g;
        tables[g].push_back(free_[g].front());
        free_[g].erase(free_[g].begin());
      }
    }
  }

  void give_back(Tables& tables) {
    for (std::size_t g = 0; g < tables.size(); ++g) {
      const std::int32_t window = memory_->window(static_cast<std::int32_t>(g));
      const std::int32_t unseen = window > 0 ? std::max(0, length_ - window + 1) / block_tokens_ : 0;
      for (std::int32_t b = 0; b < unseen; ++b) {
        BlockId& block = tables[g][static_cast<std::size_t>(b)];
        if (!block.valid()) continue;
        const auto group = static_cast<std::int32_t>(g);
        memory_->write_block(group, block, std::vector<std::byte>(memory_->block_bytes(group), std::byte(0xff)));
        free_[g].push_back(std::exchange(block, BlockId()));
        ++given_back_;
      }
    }
  }

  Model& model_;
  std::int32_t block_tokens_, length_ = 0;
  std::int64_t given_back_ = 0;
  std::vector<std::vector<BlockId>> free_;
  Tables tables_[2];
  std::unique_ptr<SequenceMemory> memory_;
};

std::vector<TokenId> prompt_of(std::int32_t length, std::int32_t vocabulary) {
  std::vector<TokenId> out;
  for (std::int32_t i = 0; i < length; ++i) out.push_back(static_cast<TokenId>((i * 7919 + 13) % vocabulary));
  return out;
}

std::vector<std::string> windowed_architectures() {
  return {"cohere2", "gemma2", "gemma3_pattern", "gemma3_text", "gpt_oss", "mistral", "phi3_swa", "qwen2_window", "starcoder2_swa"};
}

class WindowedLayers : public ::testing::TestWithParam<std::string> {};

TEST_P(WindowedLayers, KeepOnlyWhatRowsSeeAndChangeNoBit) {
  auto model = load(weir::testing::data_path("arch/" + GetParam()), Activations::kF32, 2);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  constexpr std::int32_t kLength = 90;
  const auto prompt = prompt_of(kLength, (*model)->traits().vocab_size);
  for (const std::int32_t block_tokens : {16, 4}) {
    for (const DType type : {DType::kF32, DType::kBF16}) {
      const auto expected = TestSequences(**model, 1, kLength, 0, block_tokens, type).feed({{0, prompt}});
      ASSERT_TRUE(expected.has_value()) << expected.error().message;
      const std::int32_t all = (kLength + block_tokens - 1) / block_tokens;
      const std::uint64_t one_table = SequenceMemory((*model)->traits(), 2 * all, block_tokens, 0, type).bytes();
      for (const std::int32_t chunk : {kLength, 7, 1}) {
        SCOPED_TRACE(fmt::format("blocks of {}, {}, chunks of {}", block_tokens, dtype_name(type), chunk));
        Windowed run(**model, kLength, chunk, block_tokens, type);
        EXPECT_TRUE(run.feed_chunks(prompt, static_cast<std::size_t>(chunk)) == *expected);
        EXPECT_GT(run.given_back(), 0);
        const std::uint64_t bytes = run.memory().bytes();
        EXPECT_TRUE(chunk == kLength || bytes < one_table) << bytes << " of " << one_table;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, WindowedLayers, ::testing::ValuesIn(windowed_architectures()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weir::model::testing
