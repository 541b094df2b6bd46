// SPDX-License-Identifier: Apache-2.0
// A batch that breaks its contract is refused with a message that names the row or slice, before anything is computed.
#include "model/batch_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace weir::model {
namespace {

using ::testing::HasSubstr;

// Two slices, of 3 and 2 rows, of a model with attention and recurrent layers, vocabulary 10, 40 learned positions.
struct Example {
  Traits traits;
  Weights weights;
  std::vector<BlockId> blocks{BlockId(3), BlockId(0)};
  std::vector<TokenId> tokens{1, 2, 3, 9, 0};
  std::vector<kernels::SequenceSlice> slices;
  std::vector<std::int32_t> outputs{2, 4};
  std::vector<std::int32_t> types;

  Example() {
    traits.vocab_size = 10;
    traits.hidden = 4;
    traits.attention = {.heads = 2, .kv_heads = 1, .head_dim = 4, .value_dim = 4};
    traits.recurrent.conv_taps = 3;
    traits.layers = {{.mixer = MixerKind::kAttention}, {.mixer = MixerKind::kShortConv}};
    weights.position_embedding = kernels::Weight{{DType::kF32, {40, 4}, {}}};
    slices = {{0, 3, 29, 0, blocks, StateSlot(1)}, {3, 2, 0, 0, blocks, StateSlot(0)}};
  }
  Status check() const {
    const SequenceMemory memory(traits, 4, 16, 2, DType::kF32);
    std::vector<bool> used;
    return check_batch(traits, weights, memory, {tokens, slices, outputs, types}, used);
  }
};

TEST(BatchCheck, AcceptsABatchThatKeepsItsContract) {
  EXPECT_TRUE(Example().check().has_value());
  Example without_outputs;
  without_outputs.outputs.clear();
  EXPECT_TRUE(without_outputs.check().has_value());
}

struct Broken {
  const char* name;
  std::function<void(Example&)> change;
  const char* message;
};

class BatchCheckRefuses : public ::testing::TestWithParam<Broken> {};

TEST_P(BatchCheckRefuses, NamingWhatIsWrong) {
  Example e;
  GetParam().change(e);
  const Status status = e.check();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message, HasSubstr(GetParam().message));
}

const Broken kBroken[] = {
    {"TokenAboveTheVocabulary", [](Example& e) { e.tokens[3] = 10; }, "row 3: token 10"},
    {"NegativeToken", [](Example& e) { e.tokens[0] = -1; }, "row 0: token -1"},
    {"GapBetweenSlices", [](Example& e) { e.slices[1].first_row = 4; }, "slice 1 starts at row 4"},
    {"EmptySlice", [](Example& e) { e.slices[1].row_count = 0; }, "slice 1 has 0 rows"},
    {"NegativePosition", [](Example& e) { e.slices[0].first_position = -1; }, "slice 0 has 3 rows from position -1"},
    {"PositionsOverflow", [](Example& e) { e.slices[0].first_position = 2147483647; }, "slice 0 ends at position 2147483650"},
    {"BeyondLearnedPositions", [](Example& e) { e.traits.position_offset = 9; }, "this model has 31 positions"},
    {"RowsNotCovered", [](Example& e) { e.slices.pop_back(); }, "cover 3 rows of 5"},
    {"MoreRowsThanTokens", [](Example& e) { e.slices[1].row_count = 3; }, "cover 6 rows of 5"},
    {"BlocksMissing", [](Example& e) { e.slices[0].blocks = e.slices[0].blocks.first(1); }, "its 1 blocks hold 16"},
    {"BlockOutOfRange", [](Example& e) { e.blocks[1] = BlockId(4); }, "block 4 is not in [0, 4)"},
    {"InvalidBlock", [](Example& e) { e.blocks[0] = BlockId(); }, "block -1"},
    {"StateMissing", [](Example& e) { e.slices[0].state = StateSlot(); }, "state slot -1"},
    {"StateOutOfRange", [](Example& e) { e.slices[0].state = StateSlot(2); }, "state slot 2"},
    {"StateShared", [](Example& e) { e.slices[0].state = StateSlot(0); }, "another slice's"},
    {"OutputRowsDoNotAscend", [](Example& e) { e.outputs = {2, 2}; }, "output row 2 after 2"},
    {"OutputRowOutOfRange", [](Example& e) { e.outputs = {5}; }, "output row 5"},
    {"EncoderContinues", [](Example& e) { e.traits.attention.causal = false; }, "an encoder takes a sequence whole"},
    {"TypesWithoutTable", [](Example& e) { e.types.assign(5, 0); }, "no types"},
    {"TypeOutOfRange",
     [](Example& e) {
       e.weights.type_embedding = kernels::Weight{{DType::kF32, {2, 4}, {}}};
       e.types.assign(5, 2);
     },
     "token type 2"},
};

// The same two slices of a model with one layer that sees all and one that sees 16 positions: the second slice goes on at position 40.
struct WindowedExample {
  Traits traits;
  Weights weights;
  std::vector<BlockId> all{BlockId(0), BlockId(1), BlockId(2)};
  std::vector<BlockId> windowed{BlockId(), BlockId(1), BlockId(0)};  // position 25 is the first that row 40 sees
  std::vector<BlockId> first{BlockId(1)};
  std::vector<TokenId> tokens{1, 2, 3};
  std::vector<std::span<const BlockId>> tables{first, windowed};

  WindowedExample() {
    traits.vocab_size = 10;
    traits.hidden = 4;
    traits.attention = {.heads = 2, .kv_heads = 1, .head_dim = 4, .value_dim = 4};
    traits.layers = {{.mixer = MixerKind::kAttention, .window = 16}, {.mixer = MixerKind::kAttention}};
  }
  Status check(std::int32_t position = 40) const {
    const std::vector<kernels::SequenceSlice> slices{{0, 1, 3, 0, all, {}}, {1, 2, position, 0, all, {}}};
    const SequenceMemory memory(traits, {.blocks = {3, 2}, .block_tokens = 16, .kv_type = DType::kF32});
    std::vector<bool> used;
    return check_batch(traits, weights, memory,
                       {.tokens = tokens, .slices = slices, .output_rows = {}, .token_types = {}, .tables = tables}, used);
  }
  std::string message(std::int32_t position = 40) const {
    const Status status = check(position);
    return status ? "" : status.error().message;
  }
};

TEST(BatchCheckOfWindows, BlocksThatNoRowSeesMayBeGone) {
  EXPECT_EQ(WindowedExample().message(), "");
  EXPECT_EQ(WindowedExample().message(31), "");  // sees 16 … 31 and no more
}

TEST(BatchCheckOfWindows, BlocksThatARowSeesMayNot) {
  EXPECT_THAT(WindowedExample().message(30), HasSubstr("slice 1: block -1 is not in [0, 2)"));
  WindowedExample e;
  e.windowed[2] = BlockId();
  EXPECT_THAT(e.message(), HasSubstr("slice 1: block -1"));
  WindowedExample of_all;
  of_all.all[0] = BlockId();
  EXPECT_THAT(of_all.message(), HasSubstr("slice 0: block -1 is not in [0, 3)"));
}

TEST(BatchCheckOfWindows, EachTableHasTheBlocksOfItsGroup) {
  WindowedExample e;
  e.windowed[2] = BlockId(2);  // the group has two
  EXPECT_THAT(e.message(), HasSubstr("slice 1: block 2 is not in [0, 2)"));
  WindowedExample shorter;
  shorter.tables[1] = std::span<const BlockId>(shorter.windowed).first(2);
  EXPECT_THAT(shorter.message(), HasSubstr("slice 1 ends at position 42, its 2 blocks hold 32"));
}

TEST(BatchCheckOfWindows, EverySliceHasATableOfEachGroup) {
  WindowedExample e;
  e.tables.pop_back();
  EXPECT_THAT(e.message(), HasSubstr("1 further block tables for 2 slices, 2 are needed"));
  e.tables.clear();
  EXPECT_THAT(e.message(), HasSubstr("0 further block tables"));
}

INSTANTIATE_TEST_SUITE_P(All, BatchCheckRefuses, ::testing::ValuesIn(kBroken), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weir::model
