// SPDX-License-Identifier: Apache-2.0
// Linear layers and embeddings through the backend: right values, and the same bits whatever the rows, threads or jobs.
#include <cmath>

#include "kernels/cpu_backend_impl.h"
#include "kernels/reference/dequantize.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;

struct TestWeight {
  TestWeight(DType type, std::int64_t out, std::int64_t in, unsigned seed) : bytes(random_weights(type, out, in, seed)) {
    weight.view = {type, {out, in}, bytes};
    wide.resize(static_cast<std::size_t>(out * in));
    dequantize_row(type, bytes.data(), out * in, wide.data());
  }
  std::vector<std::byte> bytes;
  Weight weight;
  Floats wide;
};

Floats run(Backend& backend, const Weight& weight, const Floats& x, std::int64_t rows, const float* bias = nullptr) {
  Floats out(static_cast<std::size_t>(rows * weight.out()));
  const LinearJob job{{x.data(), rows, weight.in()}, &weight, bias, {out.data(), rows, weight.out()}, false};
  backend.linear({&job, 1});
  return out;
}

class Linear : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  std::unique_ptr<Backend> backend(Activations activations, int threads = 1) const {
    return std::make_unique<CpuBackend>(*GetParam(), activations, threads);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Linear, ::testing::ValuesIn(runnable_tables()),
                         [](const auto& info) { return std::string(info.param->name); });

std::vector<DType> all_types() {
  std::vector<DType> types = kQuantized;
  types.insert(types.end(), kPlain.begin(), kPlain.end());
  return types;
}

std::int64_t odd_width(DType type) { return dtype_info(type).quantized ? (dtype_info(type).block_size == 32 ? 608 : 768) : 603; }

TEST_P(Linear, FloatActivationsGiveTheExactProduct) {
  const auto cpu = backend(Activations::kF32);
  for (const DType type : all_types()) {
    const std::int64_t in = odd_width(type), rows = 5, out = 37;
    const TestWeight w(type, out, in, 3);
    const Floats x = random_floats(rows * in, 4), bias = random_floats(out, 5);
    const Floats y = run(*cpu, w.weight, x, rows, bias.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < out; ++o) {
        double exact = bias[static_cast<std::size_t>(o)], size = 1;
        for (std::int64_t i = 0; i < in; ++i) {
          const double term = static_cast<double>(x[static_cast<std::size_t>(r * in + i)]) * w.wide[static_cast<std::size_t>(o * in + i)];
          exact += term, size += std::abs(term);
        }
        ASSERT_NEAR(y[static_cast<std::size_t>(r * out + o)], exact, 1e-6 * size) << dtype_name(type);
      }
    }
  }
}

// An int8 activation is off by at most half a step of its block, so a product by at most Σ |w| · step / 2.
TEST_P(Linear, Int8ActivationsStayWithinTheirRounding) {
  const auto cpu = backend(Activations::kInt8);
  for (const DType type : kQuantized) {
    const std::int64_t in = odd_width(type), rows = 3, out = 21;
    const TestWeight w(type, out, in, 6);
    const Floats x = random_floats(rows * in, 7);
    const Floats y = run(*cpu, w.weight, x, rows);
    double squares = 0, error = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < out; ++o) {
        double exact = 0, bound = 1e-6;
        for (std::int64_t b = 0; b < in; b += 32) {
          double largest = 0, weights = 0;
          for (std::int64_t i = b; i < b + 32; ++i) {
            const double xi = x[static_cast<std::size_t>(r * in + i)], wi = w.wide[static_cast<std::size_t>(o * in + i)];
            exact += xi * wi, weights += std::abs(wi), bound += 1e-6 * std::abs(xi * wi);
            largest = std::max(largest, std::abs(xi));
          }
          bound += weights * largest / 127 * 0.5001;
        }
        const double off = y[static_cast<std::size_t>(r * out + o)] - exact;
        ASSERT_LE(std::abs(off), bound) << dtype_name(type);
        squares += exact * exact, error += off * off;
      }
    }
    EXPECT_LT(std::sqrt(error / squares), 0.02) << dtype_name(type);  // far inside of the bound on average
  }
}

TEST_P(Linear, ARowDoesNotDependOnOtherRowsOrThreads) {
  for (const Activations activations : {Activations::kInt8, Activations::kF32}) {
    for (const DType type : all_types()) {
      const std::int64_t in = odd_width(type), rows = 19, out = 70;
      const TestWeight w(type, out, in, 8);
      const Floats x = random_floats(rows * in, 9);
      const Floats together = run(*backend(activations), w.weight, x, rows);
      for (const int threads : {2, 3})
        EXPECT_TRUE(same_bits(run(*backend(activations, threads), w.weight, x, rows), together)) << dtype_name(type);
      const auto cpu = backend(activations);
      Floats alone;
      for (std::int64_t r = 0; r < rows; ++r) {
        const Floats y = run(*cpu, w.weight, {x.begin() + r * in, x.begin() + (r + 1) * in}, 1);
        alone.insert(alone.end(), y.begin(), y.end());
      }
      EXPECT_TRUE(same_bits(alone, together)) << dtype_name(type);
    }
  }
}

// Each job's last `prompt` rows are a prompt's.
Floats run_prompt(Backend& backend, const Weight& weight, const Floats& x, std::int64_t rows, std::int64_t prompt,
                  const InputStep* step = nullptr) {
  Floats out(static_cast<std::size_t>(rows * weight.out()), 1.0f);
  const LinearJob job{{x.data(), rows, weight.in()}, &weight, nullptr, {out.data(), rows, weight.out()}, true, step, prompt};
  backend.linear({&job, 1});
  return out;
}

// Factors rounded to bf16 are off by 2^-9 of themselves, and by nothing else.
TEST_P(Linear, RowsOfPromptsStayWithinTheirRounding) {
  const auto cpu = backend(Activations::kInt8);
  if (!cpu->phases_differ()) return;  // one arithmetic for all rows
  const auto rounded = [](double x) { return static_cast<double>(bf16_to_float(float_to_bf16(static_cast<float>(x)))); };
  for (const DType type : kQuantized) {
    const std::int64_t in = odd_width(type), rows = 37, out = 85;
    const TestWeight w(type, out, in, 6);
    const Floats x = random_floats(rows * in, 7);
    const Floats y = run_prompt(*cpu, w.weight, x, rows, rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < out; ++o) {
        double exact = 1, bound = 1e-6;
        for (std::int64_t i = 0; i < in; ++i) {
          const double wi = w.wide[static_cast<std::size_t>(o * in + i)];
          const double term = rounded(x[static_cast<std::size_t>(r * in + i)]) * rounded(wi);
          exact += term, bound += 1e-5 * std::abs(term);
        }
        ASSERT_NEAR(y[static_cast<std::size_t>(r * out + o)], exact, bound) << dtype_name(type);
      }
    }
  }
}

TEST_P(Linear, TheArithmeticOfARowIsThatOfItsPhase) {
  const std::int64_t in = 768, rows = 75, out = 70;
  NormParams norm;
  const InputStep step{.kind = InputStep::Kind::kNorm, .norm = norm, .factor = {}};
  for (const DType type : {DType::kQ4_0, DType::kQ4_K, DType::kQ6_K, DType::kBF16}) {
    const TestWeight w(type, out, in, 8);
    const Floats x = random_floats(rows * in, 9);
    const auto one = backend(Activations::kInt8);
    for (const InputStep* input : {static_cast<const InputStep*>(nullptr), &step}) {
      const Floats prompt = run_prompt(*one, w.weight, x, rows, rows, input), decode = run_prompt(*one, w.weight, x, rows, 0, input);
      EXPECT_EQ(same_bits(prompt, decode), !one->phases_differ() || type == DType::kBF16) << dtype_name(type);
      for (const int threads : {1, 2, 3}) {
        const auto cpu = backend(Activations::kInt8, threads);
        for (const std::int64_t last : {1, 20, 74}) {
          Floats expected(decode.begin(), decode.end() - last * out);
          expected.insert(expected.end(), prompt.end() - last * out, prompt.end());
          EXPECT_TRUE(same_bits(run_prompt(*cpu, w.weight, x, rows, last, input), expected)) << dtype_name(type) << last;
        }
      }
      for (const std::int64_t r : {0, 33, 74}) {
        const Floats alone = run_prompt(*one, w.weight, {x.begin() + r * in, x.begin() + (r + 1) * in}, 1, 1, input);
        EXPECT_TRUE(same_bits(alone, {prompt.begin() + r * out, prompt.begin() + (r + 1) * out})) << dtype_name(type) << r;
      }
    }
  }
}

// More inputs than a task's share of the second-level cache, with a rest that is no chunk of its own.
TEST_P(Linear, LongRowsOfPromptsAreTakenInRanges) {
  const std::int64_t rows = 256, out = 80;
  for (const std::int64_t in : {2048 + 96, 4096 + 32, 5120}) {
    const auto cpu = backend(Activations::kInt8);
    const TestWeight w(DType::kQ4_0, out, in, 1);
    const Floats x = random_floats(rows * in, 2);
    const Floats y = run_prompt(*cpu, w.weight, x, rows, rows);
    for (const std::int64_t r : {0, 255}) {
      const Floats alone = run_prompt(*cpu, w.weight, {x.begin() + r * in, x.begin() + (r + 1) * in}, 1, 1);
      EXPECT_TRUE(same_bits(alone, {y.begin() + r * out, y.begin() + (r + 1) * out})) << in << " " << r;
    }
  }
}

TEST_P(Linear, ManyRowsAreCutWithoutATrace) {
  const auto cpu = backend(Activations::kInt8, 2);
  const TestWeight w(DType::kQ4_1, 48, 64, 1);
  const Floats x = random_floats(600 * 64, 2);
  const Floats y = run(*cpu, w.weight, x, 600);
  for (const std::int64_t r : {0, 255, 256, 599}) {
    const Floats alone = run(*cpu, w.weight, {x.begin() + r * 64, x.begin() + (r + 1) * 64}, 1);
    EXPECT_TRUE(same_bits(alone, {y.begin() + r * 48, y.begin() + (r + 1) * 48})) << r;
  }
}

TEST_P(Linear, JobsOfOneCallAreIndependent) {
  const auto cpu = backend(Activations::kInt8, 2);
  const TestWeight a(DType::kQ8_0, 33, 64, 1), b(DType::kF16, 20, 64, 2), c(DType::kQ4_0, 17, 96, 3);
  const Floats x = random_floats(3 * 64, 4), other = random_floats(2 * 96, 5);
  Floats ya(99), yb(60), yc(34), ya2(33);
  const std::vector<LinearJob> jobs{{{x.data(), 3, 64}, &a.weight, nullptr, {ya.data(), 3, 33}, false},
                                    {{x.data(), 3, 64}, &b.weight, nullptr, {yb.data(), 3, 20}, false},
                                    {{other.data(), 2, 96}, &c.weight, nullptr, {yc.data(), 2, 17}, false},
                                    {{x.data() + 64, 1, 64}, &a.weight, nullptr, {ya2.data(), 1, 33}, false},
                                    {{x.data(), 0, 64}, &a.weight, nullptr, {ya2.data(), 0, 33}, false}};
  cpu->linear(jobs);
  EXPECT_TRUE(same_bits(ya, run(*cpu, a.weight, x, 3)));
  EXPECT_TRUE(same_bits(yb, run(*cpu, b.weight, x, 3)));
  EXPECT_TRUE(same_bits(yc, run(*cpu, c.weight, other, 2)));
  EXPECT_TRUE(same_bits(ya2, {ya.begin() + 33, ya.begin() + 66}));
}

// Rows of bf16 weights' jobs are rounded once for all tasks: those that share an input, those with one of their own, and a piece of one.
TEST_P(Linear, JobsShareTheirRoundedInput) {
  const auto cpu = backend(Activations::kInt8, 2);
  constexpr std::int64_t kRows = 300, kIn = 72, kFirst = 40, kPart = 9;  // more rows than a block has
  const TestWeight a(DType::kBF16, 70, kIn, 1), b(DType::kBF16, 33, kIn, 2);
  const Floats x = random_floats(kRows * kIn, 4), other = random_floats(kRows * kIn, 5);
  Floats ya(kRows * 70), yb(kRows * 33), yc(kRows * 33), part(kPart * 70);
  const std::vector<LinearJob> jobs{{{x.data(), kRows, kIn}, &a.weight, nullptr, {ya.data(), kRows, 70}, false},
                                    {{other.data(), kRows, kIn}, &b.weight, nullptr, {yb.data(), kRows, 33}, false},
                                    {{x.data(), kRows, kIn}, &b.weight, nullptr, {yc.data(), kRows, 33}, false},
                                    {{x.data() + kFirst * kIn, kPart, kIn}, &a.weight, nullptr, {part.data(), kPart, 70}, false}};
  cpu->linear(jobs);
  EXPECT_TRUE(same_bits(ya, run(*cpu, a.weight, x, kRows)));
  EXPECT_TRUE(same_bits(yb, run(*cpu, b.weight, other, kRows)));
  EXPECT_TRUE(same_bits(yc, run(*cpu, b.weight, x, kRows)));
  EXPECT_TRUE(same_bits(part, {ya.begin() + kFirst * 70, ya.begin() + (kFirst + kPart) * 70}));
  for (const std::int64_t r : {0, 149, 150, 299}) {
    const Floats alone = run(*cpu, a.weight, {x.begin() + r * kIn, x.begin() + (r + 1) * kIn}, 1);
    EXPECT_TRUE(same_bits(alone, {ya.begin() + r * 70, ya.begin() + (r + 1) * 70})) << r;
  }
}

TEST_P(Linear, AccumulatesIntoAPartOfARow) {
  const auto cpu = backend(Activations::kF32);
  const TestWeight w(DType::kF32, 5, 8, 1);
  const Floats x = random_floats(2 * 10, 2), bias = random_floats(5, 3);
  Floats out(2 * 7, 1.0f);
  const LinearJob job{{x.data() + 1, 2, 8, 10}, &w.weight, bias.data(), {out.data() + 1, 2, 5, 7}, true};
  cpu->linear({&job, 1});
  Floats dense(16);
  for (std::size_t r = 0; r < 2; ++r)
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(r * 10 + 1), 8, dense.begin() + static_cast<std::ptrdiff_t>(r * 8));
  const Floats y = run(*cpu, w.weight, dense, 2, bias.data());
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_EQ(out[r * 7], 1.0f);
    EXPECT_EQ(out[r * 7 + 6], 1.0f);
    for (std::size_t o = 0; o < 5; ++o) EXPECT_EQ(out[r * 7 + 1 + o], 1.0f + y[r * 5 + o]);
  }
}

TEST_P(Linear, TransposedWeightsGiveTheSameProduct) {
  for (const DType type : kPlain) {
    const std::int64_t in = 33, out = 50, rows = 6;
    TestWeight w(type, in, out, 1);  // stored [in, out]
    w.weight.layout = WeightLayout::kInOut;
    const Floats x = random_floats(rows * in, 2);
    const Floats y = run(*backend(Activations::kF32), w.weight, x, rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < out; ++o) {
        double exact = 0;
        for (std::int64_t i = 0; i < in; ++i)
          exact += static_cast<double>(x[static_cast<std::size_t>(r * in + i)]) * w.wide[static_cast<std::size_t>(i * out + o)];
        ASSERT_NEAR(y[static_cast<std::size_t>(r * out + o)], exact, 1e-5);
      }
    }
    EXPECT_TRUE(same_bits(run(*backend(Activations::kF32, 3), w.weight, x, rows), y));
    EXPECT_TRUE(same_bits(run(*backend(Activations::kF32), w.weight, {x.begin() + in, x.begin() + 2 * in}, 1),
                          {y.begin() + out, y.begin() + 2 * out}));
  }
}

TEST_P(Linear, EmbedReadsScaledRowsOfTheTable) {
  const auto cpu = backend(Activations::kInt8);
  for (const DType type : all_types()) {
    const std::int64_t width = odd_width(type);
    const TestWeight w(type, 4, width, 2);
    const std::vector<TokenId> ids{3, 0, 3};
    Floats out(static_cast<std::size_t>(3 * width));
    cpu->embed(w.weight, ids, 2.0f, {out.data(), 3, width});
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t from = static_cast<std::size_t>(ids[i / static_cast<std::size_t>(width)]) * static_cast<std::size_t>(width) +
                               i % static_cast<std::size_t>(width);
      ASSERT_EQ(out[i], 2 * w.wide[from]) << dtype_name(type);
    }
  }
}

}  // namespace
}  // namespace weir::kernels
