// SPDX-License-Identifier: Apache-2.0
// Every block type against the floats that the `gguf` package reads from the same bytes (tests/data/kernels/make.py).
#include "kernels/reference/dequantize.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/file_io.h"
#include "base/testing.h"
#include "kernels/reference/half.h"

namespace weir::kernels {
namespace {

class Dequantize : public ::testing::TestWithParam<DType> {};

TEST_P(Dequantize, ReadsTheFloatsOfTheGgufPackage) {
  constexpr std::int64_t kElements = 1024;
  const auto file = read_file(testing::data_path(fmt::format("kernels/{}.bin", dtype_name(GetParam()))));
  ASSERT_TRUE(file) << file.error().message;
  const auto bytes = static_cast<std::size_t>(row_bytes(GetParam(), kElements));
  ASSERT_EQ(file->size(), bytes + kElements * sizeof(float));
  std::vector<float> expected(kElements), values(kElements);
  std::memcpy(expected.data(), file->data() + bytes, kElements * sizeof(float));
  dequantize_row(GetParam(), std::as_bytes(std::span(*file)).data(), kElements, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], expected[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Dequantize,
                         ::testing::Values(DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K, DType::kQ3_K,
                                           DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4),
                         [](const auto& info) { return dtype_name(info.param); });

TEST(Half, EveryF16ValueSurvivesTheWayToFloatAndBack) {
  for (std::uint32_t h = 0; h < 0x10000; ++h) {
    const float f = f16_to_float(static_cast<std::uint16_t>(h));
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(f))));
    } else {
      ASSERT_EQ(float_to_f16(f), h) << f;
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float_to_f16(1.0f + 0x1p-11f), 0x3c00);  // half way: to even
  EXPECT_EQ(float_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(float_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);  // infinity
  EXPECT_EQ(float_to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(float_to_f16(0x1.8p-25f), 0x0001);
  EXPECT_EQ(float_to_f16(-6.1e-5f), 0x83ff);  // the largest subnormal but one
  EXPECT_EQ(float_to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(float_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::nanf("")))));
}

}  // namespace
}  // namespace weir::kernels
