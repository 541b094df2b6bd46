// SPDX-License-Identifier: Apache-2.0
// Speed of attention on the shape of a 1B model (32 heads of 64; `kv` KV heads) and on others: a block of a prompt, or single rows, at
// a depth. Counters: multiply-adds as two operations (masked ones not counted), bytes of keys and values per second for
// single rows, and cycles a thread spends per (row, head) and sixteen positions if it runs at WEIR_BENCH_GHZ (3.55).
// Example: weir_kernels_bench --benchmark_filter='attention/bf16/dim:64/kv:8/prefill'
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "base/huge_memory.h"
#include "kernels/cpu_backend.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;

constexpr std::int64_t kColdBytes = 96 << 20;  // keys and values of single rows come from memory, as a model's layers do
constexpr std::int32_t kBlock = 32;

struct Case {
  DType type;
  std::int32_t heads, kv_heads, dim;
  std::int32_t rows, sequences;
};

// One layer's cache with random contents.
class Cache {
 public:
  Cache(const Case& c, std::int32_t blocks, Backend& backend) {
    const auto bytes = static_cast<std::size_t>(std::int64_t{blocks} * kBlock * c.kv_heads * row_bytes(c.type, c.dim));

    keys_ = allocate_huge(bytes);
    values_ = allocate_huge(bytes);
    layer = {c.type, keys_.bytes.data(), values_.bytes.data(), kBlock, c.kv_heads, c.dim, c.dim};
    const std::int64_t cols = std::int64_t{c.kv_heads} * c.dim;
    const Floats x = random_floats(kBlock * cols, 3);
    for (std::int32_t b = 0; b < blocks; ++b) {
      const BlockId block(b);
      const SequenceSlice slice{0, kBlock, 0, 0, {&block, 1}, {}};
      backend.store_kv({x.data(), kBlock, cols}, {x.data(), kBlock, cols}, {&slice, 1}, layer);
    }
  }
  KvLayer layer;

 private:
  HugeMemory keys_, values_;
};

void attention(benchmark::State& state, Case c) {
  const auto depth = static_cast<std::int32_t>(state.range(0));
  auto backend = make_cpu_backend({.threads = static_cast<int>(state.range(1))});
  const std::int32_t blocks = (depth + c.rows + kBlock - 1) / kBlock;
  const std::int64_t bytes = std::int64_t{c.sequences} * depth * c.kv_heads * row_bytes(c.type, c.dim) * 2;
  std::vector<std::unique_ptr<Cache>> layers;
  for (std::int64_t i = 0; i == 0 || (c.rows == 1 && i * bytes < kColdBytes); ++i)
    layers.push_back(std::make_unique<Cache>(c, blocks * c.sequences, **backend));
  std::vector<BlockId> ids;
  for (std::int32_t i = 0; i < blocks * c.sequences; ++i) ids.emplace_back(i);
  std::vector<SequenceSlice> slices;
  for (std::int32_t s = 0; s < c.sequences; ++s)
    slices.push_back(
        {s * c.rows, c.rows, depth, 0, std::span(ids).subspan(static_cast<std::size_t>(s * blocks), static_cast<std::size_t>(blocks)), {}});
  const std::int64_t rows = std::int64_t{c.rows} * c.sequences, cols = std::int64_t{c.heads} * c.dim;
  const Floats q = random_floats(rows * cols, 1);
  Floats out(q.size());
  for (auto _ : state) {
    for (const auto& cache : layers)
      (*backend)->attention({q.data(), rows, cols}, slices, cache->layer,
                            {.heads = c.heads, .scale = 1 / std::sqrt(static_cast<float>(c.dim))}, {out.data(), rows, cols});
    benchmark::DoNotOptimize(out.data());
  }
  const double pairs = static_cast<double>(state.iterations()) * static_cast<double>(layers.size()) * static_cast<double>(rows * c.heads) *
                       (depth + (c.rows + 1) / 2.0);
  state.counters["op/s"] = benchmark::Counter(pairs * 4 * c.dim, benchmark::Counter::kIsRate);
  const double ghz = std::getenv("WEIR_BENCH_GHZ") ? std::atof(std::getenv("WEIR_BENCH_GHZ")) : 3.55;
  state.counters["cycles/16"] = benchmark::Counter(pairs / 16 / (ghz * 1e9) / static_cast<double>(state.range(1)),
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  if (c.rows == 1) state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(layers.size()) * bytes);
  state.SetLabel((*backend)->description());
}

void add(const Case& c, const std::string& kind, std::vector<std::int64_t> depths) {
  const std::string name = fmt::format("attention/{}/dim:{}/kv:{}/{}", dtype_name(c.type), c.dim, c.kv_heads, kind);
  auto* bench = benchmark::RegisterBenchmark(name.c_str(), attention, c);
  bench->ArgNames({"depth", "threads"})->ArgsProduct({std::move(depths), {1, 2}})->UseRealTime();
}

int register_attention() {
  for (const DType type : {DType::kBF16, DType::kF32, DType::kF16, DType::kQ8_0}) {
    add({type, 32, 8, 64, 512, 1}, "prefill", {0, 2048, 4096});
    add({type, 32, 8, 64, 1, 1}, "decode", {512, 2048, 4096});
    add({type, 32, 8, 64, 1, 16}, "decode16", {512, 4096});
  }
  add({DType::kBF16, 16, 4, 128, 512, 1}, "prefill", {0, 4096});
  add({DType::kBF16, 16, 4, 128, 1, 1}, "decode", {4096});
  add({DType::kBF16, 32, 32, 64, 512, 1}, "prefill", {0, 4096});
  add({DType::kBF16, 32, 32, 64, 1, 1}, "decode", {4096});
  return 0;
}
[[maybe_unused]] const int kRegistered = register_attention();

}  // namespace
}  // namespace weir::kernels
