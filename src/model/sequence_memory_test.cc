// SPDX-License-Identifier: Apache-2.0
#include "model/sequence_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace weir::model {
namespace {

// Attention (2 KV heads of 4), latent attention (6 + 2), a gated delta rule and a short convolution.
Traits hybrid() {
  Traits t;
  t.hidden = 8;
  t.attention = {.heads = 4, .kv_heads = 2, .head_dim = 4, .value_dim = 3};
  t.latent = {.q_rank = 0, .kv_rank = 6, .nope_dim = 4, .rope_dim = 2, .value_dim = 4};
  t.recurrent = {.conv_taps = 4, .key_heads = 2, .value_heads = 4, .key_dim = 5, .value_dim = 3};
  t.layers = {{.mixer = MixerKind::kAttention},
              {.mixer = MixerKind::kGatedDelta},
              {.mixer = MixerKind::kLatentAttention},
              {.mixer = MixerKind::kShortConv}};
  return t;
}

TEST(SequenceMemory, CountsBytesOfATokenAndOfAState) {
  EXPECT_EQ(SequenceMemory::bytes_per_token(hybrid(), DType::kF32), (2 * (4 + 3) + 6 + 2) * 4u);
  EXPECT_EQ(SequenceMemory::bytes_per_token(hybrid(), DType::kF16), (2 * (4 + 3) + 6 + 2) * 2u);
  // Delta rule: 3 inputs of 2·10 + 12 channels and 4 heads of 5 × 3; convolution: 3 inputs of 8.
  EXPECT_EQ(SequenceMemory::bytes_per_state(hybrid()), (3 * 32 + 4 * 15 + 3 * 8) * 4u);
}

TEST(SequenceMemory, KeepsHeadsOfWholeBlocksAsQ8) {
  Traits traits = hybrid();
  traits.attention = {.heads = 4, .kv_heads = 2, .head_dim = 64, .value_dim = 32};
  traits.latent = {.q_rank = 0, .kv_rank = 64, .nope_dim = 32, .rope_dim = 32, .value_dim = 32};
  EXPECT_TRUE(SequenceMemory(traits, 2, 16, 1, DType::kQ8_0).status().has_value());
  EXPECT_EQ(SequenceMemory::bytes_per_token(traits, DType::kQ8_0), (2 * (2 + 1) + 3) * 34u);
}

TEST(SequenceMemory, GivesEachLayerWhatItsMixerNeeds) {
  const SequenceMemory memory(hybrid(), 3, 16, 2, DType::kBF16);
  EXPECT_EQ(memory.kv(0).kv_heads, 2);
  EXPECT_EQ(memory.kv(0).value_dim, 3);
  EXPECT_NE(memory.kv(0).values, nullptr);
  EXPECT_EQ(memory.kv(1).keys, nullptr);
  EXPECT_EQ(memory.kv(2).key_dim, 8);
  EXPECT_EQ(memory.kv(2).value_dim, 6);
  EXPECT_EQ(memory.kv(2).values, nullptr);
  EXPECT_EQ(memory.state(0).data, nullptr);
  EXPECT_EQ(memory.state(1).floats_per_slot, 156);
  EXPECT_EQ(memory.state(3).floats_per_slot, 24);
}

TEST(SequenceMemory, CopiesABlockInAllLayersAndNothingElse) {
  SequenceMemory memory(hybrid(), 3, 16, 0, DType::kF16);
  const std::size_t keys = 2 * 16 * 4 * 2, values = 2 * 16 * 3 * 2, latents = 16 * 8 * 2;
  const auto at = [&](std::int32_t layer, bool value, std::int64_t block) {
    const kernels::KvLayer& l = memory.kv(layer);
    return (value ? l.values : l.keys) + block * l.block_stride;
  };
  std::memset(at(0, false, 1), 1, keys);
  std::memset(at(0, true, 1), 2, values);
  std::memset(at(2, false, 1), 3, latents);
  memory.copy_block(0, BlockId(1), BlockId(2), 16);
  const auto all = [](const std::byte* begin, std::size_t size, int value) {
    return std::all_of(begin, begin + size, [&](std::byte b) { return b == std::byte(value); });
  };
  EXPECT_TRUE(all(at(0, false, 2), keys, 1));
  EXPECT_TRUE(all(at(0, true, 2), values, 2));
  EXPECT_TRUE(all(at(2, false, 2), latents, 3));
  EXPECT_TRUE(all(at(0, false, 0), keys, 0));
  EXPECT_TRUE(all(at(0, true, 0), values, 0));
}

TEST(SequenceMemory, LayersOfABlockDoNotOverlap) {
  Traits traits = hybrid();
  traits.attention = {.heads = 8, .kv_heads = 8, .head_dim = 128, .value_dim = 96};  // blocks of more than a page
  const SequenceMemory memory(traits, 3, 16, 0, DType::kBF16);
  const std::int64_t keys = 8 * 16 * 128 * 2, values = 8 * 16 * 96 * 2, latents = 16 * 8 * 2;
  EXPECT_GE(memory.kv(0).values - memory.kv(0).keys, keys);
  EXPECT_GE(memory.kv(2).keys - memory.kv(0).values, values);
  EXPECT_GE(memory.kv(0).keys + memory.kv(0).block_stride - memory.kv(2).keys, latents);
  EXPECT_EQ(memory.kv(0).block_stride, memory.kv(2).block_stride);
}

TEST(SequenceMemory, CopiesAndClearsStates) {
  SequenceMemory memory(hybrid(), 0, 16, 3, DType::kF32);
  for (std::int32_t layer : {1, 3}) std::fill_n(memory.state(layer).slot(StateSlot(1)), memory.state(layer).floats_per_slot, 7.0f);
  memory.copy_state(StateSlot(1), StateSlot(2));
  memory.clear_state(StateSlot(1));
  for (std::int32_t layer : {1, 3}) {
    const kernels::StateLayer& state = memory.state(layer);
    for (std::int64_t i = 0; i < state.floats_per_slot; ++i) {
      ASSERT_EQ(state.slot(StateSlot(0))[i], 0);
      ASSERT_EQ(state.slot(StateSlot(1))[i], 0);
      ASSERT_EQ(state.slot(StateSlot(2))[i], 7);
    }
  }
}

TEST(SequenceMemory, SaysWhatCannotBeHad) {
  const auto code = [](std::int32_t blocks, std::int32_t tokens, DType type) {
    const SequenceMemory memory(hybrid(), blocks, tokens, 1, type);
    return memory.status() ? ErrorCode::kInternal : memory.status().error().code;
  };
  EXPECT_EQ(code(-1, 16, DType::kF32), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(1, 0, DType::kF32), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(1, 16, DType::kQ8_0), ErrorCode::kInvalidArgument);  // heads of 4
  EXPECT_EQ(code(1, 16, DType::kQ4_0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(2147483647, 2147483647, DType::kF32), ErrorCode::kExhausted);
  EXPECT_TRUE(SequenceMemory(hybrid(), 4, 16, 1, DType::kF32).status().has_value());
}

TEST(SequenceMemory, WithoutMemoryBookkeepingStillWorks) {
  SequenceMemory memory(hybrid(), 2147483647, 2147483647, 2, DType::kF32);
  ASSERT_FALSE(memory.status().has_value());
  memory.clear_state(StateSlot(1));
  memory.copy_state(StateSlot(0), StateSlot(1));
  memory.copy_block(0, BlockId(0), BlockId(1), 16);
}

}  // namespace
}  // namespace weir::model
