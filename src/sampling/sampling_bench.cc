// SPDX-License-Identifier: Apache-2.0
// What choosing a token costs beside a decode step, for the vocabularies of SmolLM2 (49,152) and Qwen3 (151,936). The logits are
// normal with a deviation of 3 and a few clear leaders, as those of a model that knows what it wants to say.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "sampling/logprobs.h"
#include "sampling/sampler.h"

namespace weir::sampling {
namespace {

std::vector<float> model_like_logits(std::int64_t size) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(static_cast<std::size_t>(size));
  for (float& v : logits) v = normal(random);
  for (std::size_t i = 0; i < 20; ++i) logits[(i * 7919) % logits.size()] = 20.f - static_cast<float>(i) * 0.6f;
  return logits;
}

void run(benchmark::State& state, const SamplingParams& params) {
  const auto logits = model_like_logits(state.range(0));
  Sampler sampler(params);
  std::uint64_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sampler.sample(logits, position++));
}

void greedy(benchmark::State& state) { run(state, {}); }
void temperature_only(benchmark::State& state) { run(state, {.temperature = 0.8f, .seed = 1}); }
void top_k_40(benchmark::State& state) { run(state, {.temperature = 0.8f, .top_k = 40, .seed = 1}); }
void top_k_20_top_p(benchmark::State& state) { run(state, {.temperature = 0.6f, .top_k = 20, .top_p = 0.95f, .seed = 1}); }
void top_p(benchmark::State& state) { run(state, {.temperature = 0.8f, .top_p = 0.95f, .seed = 1}); }
void flat_top_p(benchmark::State& state) { run(state, {.temperature = 50, .top_p = 0.95f, .seed = 1}); }
void min_p(benchmark::State& state) { run(state, {.temperature = 0.8f, .min_p = 0.05f, .seed = 1}); }
void typical(benchmark::State& state) { run(state, {.temperature = 0.8f, .typical_p = 0.9f, .seed = 1}); }
void penalties(benchmark::State& state) { run(state, {.repetition_penalty = 1.1f, .frequency_penalty = 0.2f}); }

void logprobs_top_5(benchmark::State& state) {
  const auto logits = model_like_logits(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(token_logprobs(logits, 7, 5));
}

BENCHMARK(greedy)->Arg(49152)->Arg(151936);
BENCHMARK(temperature_only)->Arg(49152)->Arg(151936);
BENCHMARK(top_k_40)->Arg(49152)->Arg(151936);
BENCHMARK(top_k_20_top_p)->Arg(49152)->Arg(151936);
BENCHMARK(top_p)->Arg(49152)->Arg(151936);
BENCHMARK(flat_top_p)->Arg(49152)->Arg(151936);
BENCHMARK(min_p)->Arg(49152)->Arg(151936);
BENCHMARK(typical)->Arg(49152)->Arg(151936);
BENCHMARK(penalties)->Arg(49152)->Arg(151936);
BENCHMARK(logprobs_top_5)->Arg(49152)->Arg(151936);

}  // namespace
}  // namespace weir::sampling
