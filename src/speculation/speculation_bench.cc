// SPDX-License-Identifier: Apache-2.0
// What guessing costs beside a decode step: the index of a million tokens, taking tokens back, and whole turns of the Speculator.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "speculation/test_target.h"

namespace weir::speculation {
namespace {

constexpr std::size_t kTokens = 1'000'000;

Tokens text(std::int64_t kind) {
  if (kind == 0) return random_tokens(1, kTokens, 50'000);
  if (kind == 1) return random_tokens(1, kTokens, 60);  // every pair has been seen, again and again
  if (kind == 2) return Tokens(kTokens, 7);
  Tokens tokens = random_tokens(1, kTokens / 2, 50'000);  // a copy
  tokens.resize(kTokens);
  std::copy_n(tokens.begin(), kTokens / 2, tokens.begin() + kTokens / 2);
  return tokens;
}

void per_token(benchmark::State& state) {
  state.counters["token"] = benchmark::Counter(kTokens, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void append(benchmark::State& state) {
  const Tokens tokens = text(state.range(0));
  for (auto _ : state) {
    PromptLookup lookup;
    lookup.append(tokens);
    benchmark::DoNotOptimize(lookup.size());
  }
  per_token(state);
}
BENCHMARK(append)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

void append_find_and_read(benchmark::State& state) {
  const Tokens tokens = text(state.range(0));
  for (auto _ : state) {
    PromptLookup lookup;
    TokenId guesses[8];
    for (const TokenId token : tokens) {
      lookup.append({&token, 1});
      const auto match = lookup.find();
      if (match.strength > 0) lookup.read(match, guesses);
      benchmark::DoNotOptimize(guesses);
    }
  }
  per_token(state);
}
BENCHMARK(append_find_and_read)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

void append_and_take_back(benchmark::State& state) {
  const Tokens tokens = text(state.range(0));
  for (auto _ : state) {
    PromptLookup lookup;
    lookup.append(tokens);
    lookup.truncate(0);
  }
  per_token(state);
}
BENCHMARK(append_and_take_back)->DenseRange(0, 3)->Unit(benchmark::kMillisecond);

// One turn with so many streams, of which half copy; the fake target's own time is small beside it.
void turn(benchmark::State& state) {
  const Tokens source = random_tokens(1, 20'000, 50'000), fresh = random_tokens(2, 20'000, 50'000);
  const Target copy = script(source, source), other = script(source, fresh);
  Speculator speculator = with_look_up();
  std::vector<Stream> streams;
  std::int64_t id = 0;
  for (; id < state.range(0); ++id) streams.push_back({SeqId(id), id % 2 == 0 ? &copy : &other, source, 2 * source.size()});
  std::vector<SequenceView> views;
  for (auto _ : state) {
    views.clear();
    for (Stream& s : streams) {
      if (s.tokens.size() < 2 * source.size()) s.tokens.push_back((*s.target)(s.tokens));
      views.push_back({s.id, s.tokens, 100});
    }
    benchmark::DoNotOptimize(speculator.propose(views));
    speculator.completed({.decode_rows = state.range(0), .elapsed = std::chrono::milliseconds(5), .verified = {}});
  }
}
BENCHMARK(turn)->Arg(1)->Arg(16)->Arg(256)->Iterations(10'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace weir::speculation
