// SPDX-License-Identifier: Apache-2.0
// Quantising and reading back: levels survive, errors are what the number of bits allows, odd inputs do no harm.
#include "kernels/reference/quantize.h"

#include <cmath>
#include <limits>

#include "kernels/reference/dequantize.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;

std::vector<std::byte> quantize(DType type, const Floats& x) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(type, static_cast<std::int64_t>(x.size()))));
  quantize_row(type, x.data(), static_cast<std::int64_t>(x.size()), bytes.data());
  return bytes;
}

Floats read_back(DType type, const Floats& x) {
  const auto bytes = quantize(type, x);
  Floats y(x.size());
  dequantize_row(type, bytes.data(), static_cast<std::int64_t>(x.size()), y.data());
  return y;
}

double relative_error(const Floats& x, const Floats& y) {
  double squares = 0, error = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    squares += static_cast<double>(x[i]) * x[i], error += static_cast<double>(x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(error / squares);
}

TEST(Quantize, LosesOfNormalValuesWhatTheBitsAllow) {
  const struct {
    DType type;
    double most;
  } cases[] = {{DType::kF16, 3e-4},     {DType::kBF16, 2e-3},    {DType::kQ8_0, 0.006}, {DType::kQ6_K, 0.020}, {DType::kQ5_K, 0.039},
               {DType::kQ5_1, 0.042},   {DType::kQ5_0, 0.045},   {DType::kQ4_K, 0.077}, {DType::kQ4_1, 0.083}, {DType::kQ4_0, 0.090},
               {DType::kIQ4_NL, 0.075}, {DType::kIQ4_XS, 0.077}, {DType::kMXFP4, 0.13}, {DType::kQ3_K, 0.16},  {DType::kQ2_K, 0.31}};
  const Floats x = random_floats(64 * 256, 1, 0.05f);
  for (const auto& [type, most] : cases) {
    const double error = relative_error(x, read_back(type, x));
    EXPECT_LT(error, most) << dtype_name(type);
    EXPECT_GT(error, most / 3) << dtype_name(type) << ": too good to be true";
  }
}

TEST(Quantize, KeepsValuesThatAreLevelsOfABlock) {
  for (const DType type : kQuantized) {
    const auto weights = random_weights(type, 1, 256, 21);
    Floats x(256);
    dequantize_row(type, weights.data(), 256, x.data());
    const double loose = type == DType::kMXFP4 ? 1e-9 : type == DType::kQ2_K || type == DType::kQ3_K ? 0.16 : 0.06;
    EXPECT_LT(relative_error(x, read_back(type, x)), loose) << dtype_name(type);
  }
}

TEST(Quantize, ZerosAndConstantsComeBack) {
  for (const DType type : kQuantized) {
    EXPECT_EQ(read_back(type, Floats(256, 0.0f)), Floats(256, 0.0f)) << dtype_name(type);
    for (const float value : {0.75f, -0.75f})
      EXPECT_LT(relative_error(Floats(256, value), read_back(type, Floats(256, value))), 0.04) << dtype_name(type) << value;
  }
}

TEST(Quantize, ValuesThatAreNotFiniteCountAsZero) {
  for (const DType type : kQuantized) {
    Floats x = random_floats(256, 5), clean = x;
    x[3] = std::numeric_limits<float>::quiet_NaN(), x[40] = std::numeric_limits<float>::infinity(), x[200] = -x[40];
    clean[3] = clean[40] = clean[200] = 0;
    EXPECT_EQ(quantize(type, x), quantize(type, clean)) << dtype_name(type);
  }
}

TEST(Quantize, ExtremeMagnitudesStayFinite) {
  for (const DType type : kQuantized) {
    for (const float scale : {1e-38f, 1e-8f, 1e4f, 1e30f}) {
      for (const float v : read_back(type, random_floats(256, 6, scale))) ASSERT_TRUE(std::isfinite(v)) << dtype_name(type) << scale;
    }
  }
}

}  // namespace
}  // namespace weir::kernels
