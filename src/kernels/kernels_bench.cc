// SPDX-License-Identifier: Apache-2.0
// Speed of linear layers with packed weights. Counters: bytes of weights per second, and multiply-adds counted as two operations. Example:
// weir_kernels_bench --benchmark_filter='linear/Q4_1'
#include <benchmark/benchmark.h>

#include "kernels/cpu_backend.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;

// Weights of at least this many bytes, so that they come from where a model's would.
const std::int64_t kWorkingSet = (std::getenv("WEIR_BENCH_MB") ? std::atoi(std::getenv("WEIR_BENCH_MB")) : 64) * std::int64_t{1 << 20};

void linear(benchmark::State& state, DType type, Activations activations, std::int64_t in, std::int64_t out) {
  const std::int64_t rows = state.range(0);
  auto backend = make_cpu_backend({.threads = static_cast<int>(state.range(1)), .activations = activations});
  const std::int64_t bytes = out * row_bytes(type, in), copies = rows <= 32 ? kWorkingSet / bytes + 1 : 1;
  const auto one = random_weights(type, out, in, 1);
  const Weight weight{{type, {out, in}, one}};
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const auto packed_bytes = static_cast<std::size_t>((*backend)->packed_bytes(weight)), step = (packed_bytes + 63) / 64;
  std::vector<Line> packed(step * static_cast<std::size_t>(copies));
  std::vector<Weight> weights(static_cast<std::size_t>(copies), weight);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    (*backend)->pack(weight, {packed[i * step].bytes, packed_bytes});
    weights[i].packed = packed[i * step].bytes;
  }
  const Floats x = random_floats(rows * in, 2);
  Floats y(static_cast<std::size_t>(rows * out));
  for (auto _ : state) {
    for (const Weight& w : weights) {
      const LinearJob job{{x.data(), rows, in}, &w, nullptr, {y.data(), rows, out}, false};
      (*backend)->linear({&job, 1});
    }
    benchmark::DoNotOptimize(y.data());
  }
  state.SetBytesProcessed(state.iterations() * bytes * copies);
  state.counters["op/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * copies * 2 * rows * in * out), benchmark::Counter::kIsRate);
  state.SetLabel((*backend)->description());
}

// With one thread the processor's time counts, so that other programs disturb less.
template <class... Args>
void add(const std::string& name, std::vector<std::int64_t> sizes, const char* size_name, Args... args) {
  for (const int threads : {1, 2}) {
    auto* bench = benchmark::RegisterBenchmark(name.c_str(), args...)->ArgNames({size_name, "threads"})->ArgsProduct({sizes, {threads}});
    if (threads > 1) bench->UseRealTime();
  }
}

int register_all() {
  std::vector<DType> types = kQuantized;
  types.insert(types.end(), kPlain.begin(), kPlain.end());
  for (const DType type : types) {
    const std::int64_t k = dtype_info(type).block_size == 32 ? 576 : 2048, out = k == 576 ? 1536 : 2048;
    for (const Activations a : {Activations::kInt8, Activations::kF32})
      add(fmt::format("linear/{}/{}/{}x{}", dtype_name(type), a == Activations::kInt8 ? "int8" : "f32", out, k), {1, 8, 32, 512}, "rows",
          linear, type, a, k, out);
  }
  return 0;
}
[[maybe_unused]] const int kRegistered = register_all();

}  // namespace
}  // namespace weir::kernels
