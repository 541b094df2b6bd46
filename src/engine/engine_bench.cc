// SPDX-License-Identifier: Apache-2.0
// What the engine adds to the model: grammars beside free text, guesses beside none, both through submit() and events. The two ways
// take turns; a run's figure is tokens per second over all its streams, from the first token to the last.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "base/testing.h"
#include "engine/engine.h"

namespace weir::engine {
namespace {

constexpr std::int64_t kTokens = 96;

LoadedModel& smollm2() {
  static LoadedModel loaded = [] {
    auto result = load_model(testing::smollm2_path(), {.threads = 2, .isa = ""});
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
  }();
  return loaded;
}

double tokens_per_s(Engine& engine, std::int64_t streams, const std::function<CompletionRequest(std::int64_t)>& make) {
  std::vector<std::unique_ptr<CompletionStream>> open;
  for (std::int64_t i = 0; i < streams; ++i) open.push_back(engine.submit(make(i)).value());
  TimePoint first = TimePoint::max(), last{};
  std::int64_t tokens = 0;
  for (auto& stream : open) {
    const Completion all = collect(*stream, std::chrono::seconds(60)).value();
    const Finish& finish = *all.answers.at(0).finish;
    if (finish.error) throw std::runtime_error(finish.error->message);
    first = std::min(first, finish.timeline.queued + finish.timeline.first_token);
    last = std::max(last, finish.timeline.queued + finish.timeline.finished);
    tokens += finish.generated - 1;
  }
  return static_cast<double>(tokens) / to_seconds(last - first);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

const char* const kGrammars[][2] = {
    {"regex", "[A-Za-z ,.'\\n]{2000,4000}"},
    {"schema", R"({"type":"array","minItems":40,"items":{"type":"object","additionalProperties":false,"required":["name","tags","size"],)"
               R"("properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"size":{"type":"number"}}}})"},
};

// Args: grammar, streams. "ratio": tokens per second with the grammar, relative to free text.
void constrained(benchmark::State& state) {
  const auto& [name, text] = kGrammars[state.range(0)];
  EngineOptions options{.cache_tokens = 16384};
  options.speculation.reset();
  const auto engine = Engine::start(smollm2(), std::move(options)).value();
  const auto make = [&](bool with) {
    return [&, with](std::int64_t i) {
      CompletionRequest request{.prompt = smollm2().tokenizer->encode("Some things and what they are like:"), .max_tokens = kTokens};
      request.sampling.temperature = 0.8f;
      request.sampling.seed = static_cast<std::uint64_t>(i);
      request.ignore_end = !with;
      request.speculate = false;
      if (with)
        request.grammar = grammar::GrammarSpec{
            .kind = state.range(0) == 0 ? grammar::GrammarKind::kRegex : grammar::GrammarKind::kJsonSchema, .text = text};
      return request;
    };
  };
  tokens_per_s(*engine, 1, make(true));  // builds the trie
  std::vector<double> free, bound;
  for (auto _ : state) {
    free.push_back(tokens_per_s(*engine, state.range(1), make(false)));
    bound.push_back(tokens_per_s(*engine, state.range(1), make(true)));
  }
  state.SetLabel(name);
  state.counters["free_tok_s"] = median(free);
  state.counters["ratio"] = median(bound) / median(free);
}
BENCHMARK(constrained)->ArgsProduct({{0, 1}, {1, 16}})->Iterations(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir::engine
