// SPDX-License-Identifier: Apache-2.0
// The table of types and the arithmetic of views.
#include <gtest/gtest.h>

#include <set>

#include "tensor/dtype.h"
#include "tensor/view.h"

namespace weir {
namespace {

DType type_at(int index) { return static_cast<DType>(index); }

TEST(DType, NamesAndNumbersLeadBackToTheType) {
  std::set<std::string_view> names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DTypeInfo& info = dtype_info(type_at(i));
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(dtype_from_name(info.name), type_at(i));
    if (info.gguf_id >= 0) {
      EXPECT_EQ(dtype_from_gguf(static_cast<std::uint32_t>(info.gguf_id)), type_at(i)) << info.name;
    }
    if (*info.safetensors) {
      EXPECT_EQ(dtype_from_safetensors(info.safetensors), type_at(i)) << info.name;
    }
  }
  EXPECT_EQ(dtype_from_name("q4_k"), DType::kQ4_K);
  EXPECT_EQ(dtype_from_name("Q4"), std::nullopt);
  EXPECT_EQ(dtype_from_gguf(4), std::nullopt);            // once Q4_2
  EXPECT_EQ(dtype_from_gguf(0xffffffffu), std::nullopt);  // not the -1 of types without a number
  EXPECT_EQ(dtype_from_safetensors(""), std::nullopt);
  EXPECT_EQ(dtype_from_safetensors("F8_E4M3"), std::nullopt);
}

TEST(DType, RowsOfBlocks) {
  EXPECT_EQ(row_bytes(DType::kF32, 576), 2304);
  EXPECT_EQ(row_bytes(DType::kQ4_1, 576), 360);
  EXPECT_EQ(row_bytes(DType::kQ8_0, 576), 612);
  EXPECT_EQ(row_bytes(DType::kQ6_K, 512), 420);
  EXPECT_EQ(row_bytes(DType::kMXFP4, 64), 34);
}

TEST(TensorView, SlicesAreWhereTheyShouldBe) {
  std::vector<std::byte> bytes(2 * 3 * 64 / 32 * 18);
  const TensorView view{DType::kQ4_0, {2, 3, 64}, bytes};
  EXPECT_EQ(view.elements(), 384);
  EXPECT_EQ(view.rows(), 6);
  EXPECT_EQ(view.bytes_per_row(), 36);
  const TensorView second = view.slice(1);
  EXPECT_EQ(second.shape, (std::vector<std::int64_t>{3, 64}));
  EXPECT_EQ(second.bytes.data() - bytes.data(), 108);
  EXPECT_EQ(second.bytes.size(), 108u);
  const TensorView rows = view.row_slice(4, 2);
  EXPECT_EQ(rows.shape, (std::vector<std::int64_t>{2, 64}));
  EXPECT_EQ(rows.bytes.data() - bytes.data(), 144);
  EXPECT_EQ(rows.bytes.size(), 72u);
  EXPECT_EQ(view.row_slice(6, 0).bytes.size(), 0u);
}

TEST(TensorView, ScalarsAndEmptyTensors) {
  const TensorView scalar{DType::kF32, {}, {}};
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.rows(), 1);
  const TensorView empty{DType::kF32, {4, 0}, {}};
  EXPECT_EQ(empty.elements(), 0);
  EXPECT_EQ(empty.rows(), 0);
  EXPECT_EQ(shape_string(std::vector<std::int64_t>{576, 1536}), "[576, 1536]");
  EXPECT_EQ(shape_string({}), "[]");
}

TEST(TensorViewDeathTest, SlicesBeyondTheEndAreOurOwnBug) {
  const TensorView view{DType::kF32, {2, 1}, {}};
  EXPECT_DEATH(view.slice(2), "slice 2");
  EXPECT_DEATH(view.row_slice(1, 2), "rows 1\\+2 of 2");
}

}  // namespace
}  // namespace weir
