// SPDX-License-Identifier: Apache-2.0
// Microseconds for a mask along answers under typical grammars, and what compiling takes; SmolLM2's vocabulary (49,152) and Qwen2's
// (151,936). Each iteration is one answer of a random model; the counters tell the mean and the slowest mask.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/testing.h"
#include "formats/gguf_reader.h"
#include "grammar/matcher.h"

namespace weir::grammar {
namespace {

constexpr const char* kPerson = R"({"type":"object","properties":{"name":{"type":"string","maxLength":40},"age":{"type":"integer"},
  "tags":{"type":"array","items":{"enum":["vip","new","old"]}}},"required":["name","age"],"additionalProperties":false})";
constexpr const char* kTool = R"({"anyOf":[{"type":"object","properties":{"name":{"const":"search"},"arguments":{"type":"object",
  "properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}},"required":["name","arguments"]},
  {"type":"object","properties":{"name":{"const":"mail"},"arguments":{"type":"object","properties":{"to":{"type":"string",
  "format":"email"}}}},"required":["name","arguments"]}]})";

GrammarSpec spec(int kind) {
  switch (kind) {
    case 0: return {.kind = GrammarKind::kJsonObject};
    case 1: return {.kind = GrammarKind::kJsonSchema, .text = kPerson};
    case 2: return {.kind = GrammarKind::kJsonSchema, .text = kTool};
    default: return {.kind = GrammarKind::kRegex, .text = "[A-Z][a-z]+( [A-Z][a-z]+){1,20}, [0-9]{4}-[0-9]{2}"};
  }
}

std::shared_ptr<const Vocabulary> vocabulary(bool large) {
  const auto path = large ? testing::cached_path("vocabs/ggml-vocab-qwen2.gguf") : testing::smollm2_path();
  const auto file = formats::GgufFile::open(path);
  if (!file) return nullptr;
  auto tokenizer = tokenizer::Tokenizer::from_gguf(*file);
  if (!tokenizer) return nullptr;
  const std::int32_t size = (*tokenizer)->vocab_size();
  return Vocabulary::create(std::move(*tokenizer), size);
}

const std::shared_ptr<const Vocabulary>& shared_vocabulary(bool large) {
  static const std::shared_ptr<const Vocabulary> both[2] = {vocabulary(false), vocabulary(true)};
  return both[large];
}

struct Timer {
  double total_us = 0, slowest_us = 0;
  std::int64_t count = 0;

  void add(double us) {
    total_us += us;
    slowest_us = std::max(slowest_us, us);
    ++count;
  }
};

// An answer of at most 60 tokens: each time the n-th allowed one from a pseudo-random place on.
void answer(Matcher& matcher, std::uint64_t seed, Timer& masks) {
  for (int i = 0; i < 60 && !matcher.finished(); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto mask = matcher.mask();
    masks.add(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    if (!mask) return;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    std::size_t at = (seed >> 33) % (mask->size() * 32);
    while (!((*mask)[at / 32] >> (at % 32) & 1u)) at = (at + 1) % (mask->size() * 32);
    if (!matcher.accept(static_cast<TokenId>(at))) return;
  }
}

void BM_Mask(benchmark::State& state) {
  const auto words = shared_vocabulary(state.range(0) != 0);
  if (!words) return state.SkipWithError("a vocabulary is not here: run tools/fetch_test_data.py");
  const auto grammar = compile(spec(static_cast<int>(state.range(1))), words);
  if (!grammar) return state.SkipWithError(grammar.error().message.c_str());
  Timer masks;
  std::uint64_t seed = 1;
  for (auto _ : state) {
    auto matcher = Matcher::create(*grammar);
    answer(*matcher, seed++, masks);
  }
  state.counters["mask_us"] = masks.total_us / static_cast<double>(masks.count);
  state.counters["slowest_us"] = masks.slowest_us;
}
BENCHMARK(BM_Mask)->ArgsProduct({{0, 1}, {0, 1, 2, 3}})->ArgNames({"large", "kind"})->MinTime(0.3)->Unit(benchmark::kMillisecond);

void BM_Compile(benchmark::State& state) {
  const auto words = shared_vocabulary(state.range(0) != 0);
  if (!words || !words->native()) return state.SkipWithError("a vocabulary is not here: run tools/fetch_test_data.py");
  for (auto _ : state) benchmark::DoNotOptimize(compile(spec(static_cast<int>(state.range(1))), words));
}
BENCHMARK(BM_Compile)->ArgsProduct({{0, 1}, {1, 2}})->ArgNames({"large", "kind"})->MinTime(0.2)->Unit(benchmark::kMillisecond);

void BM_Vocabulary(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    const auto words = vocabulary(state.range(0) != 0);
    state.ResumeTiming();
    if (!words || !words->native()) return state.SkipWithError("a vocabulary is not here: run tools/fetch_test_data.py");
  }
}
BENCHMARK(BM_Vocabulary)->Arg(0)->Arg(1)->ArgName("large")->Iterations(2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir::grammar
