// SPDX-License-Identifier: Apache-2.0
// Recurrent layers through the backend against their formulas in double; chunk borders, neighbours and threads leave no
// trace in results or states.
#include <cmath>

#include "kernels/cpu_backend_impl.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;

constexpr std::int64_t kRows = 23;

struct Result {
  Floats out, state;
  bool operator==(const Result& other) const { return same_bits(out, other.out) && same_bits(state, other.state); }
};

class Recurrent : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  // Calls step(backend, first row, rows, slices, state) for the rows in chunks, on slot 1 of a layer of three.
  template <class Step>
  Result run(int threads, std::int64_t chunk, std::int64_t floats, std::int64_t out_cols, Step step) const {
    CpuBackend backend(*GetParam(), Activations::kInt8, threads);
    Result result{Floats(static_cast<std::size_t>(kRows * out_cols)), Floats(static_cast<std::size_t>(3 * floats), 0.0f)};
    const StateLayer state{result.state.data(), floats};
    for (std::int64_t row = 0; row < kRows; row += chunk) {
      const std::int64_t n = std::min(chunk, kRows - row);
      const SequenceSlice slice{0, static_cast<std::int32_t>(n), static_cast<std::int32_t>(row), 0, {}, StateSlot(1)};
      step(backend, row, n, std::span(&slice, 1), state, Matrix(result.out.data() + row * out_cols, n, out_cols));
    }
    return result;
  }
  template <class Step>
  Result check_invariance(std::int64_t floats, std::int64_t out_cols, Step step) const {
    const Result whole = run(1, kRows, floats, out_cols, step);
    EXPECT_TRUE(run(3, kRows, floats, out_cols, step) == whole);
    EXPECT_TRUE(run(2, 1, floats, out_cols, step) == whole);
    EXPECT_TRUE(run(1, 7, floats, out_cols, step) == whole);
    return whole;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Recurrent, ::testing::ValuesIn(runnable_tables()),
                         [](const auto& info) { return std::string(info.param->name); });

ConstMatrix part(const Floats& x, std::int64_t row, std::int64_t n, std::int64_t cols) { return {x.data() + row * cols, n, cols}; }
double at(const Floats& x, std::int64_t i) { return x[static_cast<std::size_t>(i)]; }
double softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }

TEST_P(Recurrent, ConvolutionSeesThePastOfItsSequence) {
  constexpr std::int64_t kChannels = 150;
  for (const std::int32_t taps : {1, 3, 4}) {
    const Floats x = random_floats(kRows * kChannels, 1), weight = random_floats(kChannels * taps, 2), bias = random_floats(kChannels, 3);
    const std::int64_t floats = std::max<std::int64_t>(1, (taps - 1) * kChannels) + 5;
    const Result result = check_invariance(
        floats, kChannels, [&](Backend& b, std::int64_t row, std::int64_t n, auto slices, const StateLayer& state, Matrix out) {
          b.causal_conv(part(x, row, n, kChannels), {weight.data(), bias.data(), taps, true}, slices, state, out);
        });
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t c = 0; c < kChannels; ++c) {
        double sum = at(bias, c);
        for (std::int64_t t = 0; t < taps; ++t) {
          const std::int64_t from = r - (taps - 1) + t;
          if (from >= 0) sum += at(weight, c * taps + t) * at(x, from * kChannels + c);
        }
        ASSERT_NEAR(at(result.out, r * kChannels + c), sum / (1 + std::exp(-sum)), 3e-6);
      }
    }
    EXPECT_EQ(result.state[0], 0.0f);  // slot 0 is another sequence's
  }
}

TEST_P(Recurrent, StateSpaceScanFollowsItsFormula) {
  constexpr std::int32_t kHeads = 4, kDim = 6, kGroups = 2, kState = 19;
  const Floats x = random_floats(kRows * kHeads * kDim, 1), b = random_floats(kRows * kGroups * kState, 2),
               c = random_floats(kRows * kGroups * kState, 3), dt = random_floats(kRows * kHeads, 4), d = random_floats(kHeads, 5),
               bias = random_floats(kHeads, 6);
  const Floats a{-0.5f, -1.0f, -2.0f, -0.1f};
  const SsdParams params{kHeads, kDim, kGroups, kState, a.data(), d.data(), bias.data(), 0.1f, 1.5f};
  constexpr std::int64_t kOffset = 3, kFloats = kOffset + kHeads * kDim * kState;
  const Result result = check_invariance(
      kFloats, kHeads * kDim, [&](Backend& backend, std::int64_t row, std::int64_t n, auto slices, const StateLayer& state, Matrix out) {
        backend.ssd_scan(part(x, row, n, kHeads * kDim), part(b, row, n, kGroups * kState), part(c, row, n, kGroups * kState),
                         part(dt, row, n, kHeads), params, slices, state, kOffset, out);
      });
  std::vector<double> h(kHeads * kDim * kState);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const double step = std::clamp(softplus(at(dt, r * kHeads + head) + at(bias, head)), 0.1, 1.5);
      for (std::int64_t i = 0; i < kDim; ++i) {
        const double input = at(x, (r * kHeads + head) * kDim + i);
        double y = at(d, head) * input;
        for (std::int64_t j = 0; j < kState; ++j) {
          double& s = h[static_cast<std::size_t>((head * kDim + i) * kState + j)];
          const std::int64_t g = (r * kGroups + head / 2) * kState + j;
          s = std::exp(step * at(a, head)) * s + step * at(b, g) * input;
          y += at(c, g) * s;
        }
        ASSERT_NEAR(at(result.out, (r * kHeads + head) * kDim + i), y, 2e-5);
      }
    }
  }
}

TEST_P(Recurrent, DeltaRuleFollowsItsFormula) {
  constexpr std::int32_t kKeyHeads = 2, kValueHeads = 4, kKey = 10, kValue = 21;
  const Floats q = random_floats(kRows * kKeyHeads * kKey, 1), k = random_floats(kRows * kKeyHeads * kKey, 2),
               v = random_floats(kRows * kValueHeads * kValue, 3), alpha = random_floats(kRows * kValueHeads, 4),
               beta = random_floats(kRows * kValueHeads, 5), bias = random_floats(kValueHeads, 6);
  const Floats a{-0.5f, -1.0f, -0.2f, -0.1f};
  for (const bool tiled : {false, true}) {
    const DeltaParams params{kKeyHeads, kValueHeads, kKey, kValue, a.data(), bias.data(), tiled, 1e-6f};
    constexpr std::int64_t kFloats = kValueHeads * kKey * kValue;
    const Result result = check_invariance(
        kFloats, kValueHeads * kValue,
        [&](Backend& backend, std::int64_t row, std::int64_t n, auto slices, const StateLayer& state, Matrix out) {
          backend.delta_scan(part(q, row, n, kKeyHeads * kKey), part(k, row, n, kKeyHeads * kKey), part(v, row, n, kValueHeads * kValue),
                             part(alpha, row, n, kValueHeads), part(beta, row, n, kValueHeads), params, slices, state, 0, out);
        });
    for (std::int64_t head = 0; head < kValueHeads; ++head) {
      std::vector<double> s(kKey * kValue);
      const std::int64_t key_head = tiled ? head % kKeyHeads : head / 2;
      for (std::int64_t r = 0; r < kRows; ++r) {
        double qq = 1e-6, kk = 1e-6;
        const std::int64_t base = (r * kKeyHeads + key_head) * kKey;
        for (std::int64_t i = 0; i < kKey; ++i) qq += at(q, base + i) * at(q, base + i), kk += at(k, base + i) * at(k, base + i);
        const double decay = std::exp(at(a, head) * softplus(at(alpha, r * kValueHeads + head) + at(bias, head)));
        const double rate = 1 / (1 + std::exp(-at(beta, r * kValueHeads + head)));
        for (std::int64_t j = 0; j < kValue; ++j) {
          double found = 0, out = 0;
          for (std::int64_t i = 0; i < kKey; ++i)
            found += at(k, base + i) / std::sqrt(kk) * (s[static_cast<std::size_t>(i * kValue + j)] *= decay);
          for (std::int64_t i = 0; i < kKey; ++i) {
            double& cell = s[static_cast<std::size_t>(i * kValue + j)];
            cell += at(k, base + i) / std::sqrt(kk) * rate * (at(v, (r * kValueHeads + head) * kValue + j) - found);
            out += at(q, base + i) / std::sqrt(qq) / std::sqrt(static_cast<double>(kKey)) * cell;
          }
          ASSERT_NEAR(at(result.out, (r * kValueHeads + head) * kValue + j), out, 2e-5);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::kernels
