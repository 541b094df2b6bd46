// SPDX-License-Identifier: Apache-2.0
// Guesses on the real model: what rows of one sequence cost in a step, and how much faster prompt look-up makes answers that repeat
// their prompt, and those that do not. One sequence on a Runner; decoding with and without guesses takes turns on each task.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/testing.h"
#include "engine/chat.h"
#include "engine/loaded_model.h"
#include "engine/runner.h"
#include "sampling/sampler.h"
#include "speculation/lookup_source.h"
#include "speculation/speculator.h"
#include "speculation/verify.h"

namespace weir::engine {
namespace {

constexpr std::size_t kAnswer = 160;  // at most

const std::string kStory =
    "The old lighthouse keeper climbed the narrow stairs every evening to light the great lamp. Ships far out at sea watched for its "
    "beam and steered away from the hidden rocks. One night a terrible storm broke the glass, and the lamp went dark. The keeper took "
    "his lantern, went out on the gallery, and swung it above his head until the morning came and the last ship was safe.";
const std::string kCode =
    "def load_rows(path):\n    rows = []\n    with open(path) as file:\n        for line in file:\n            fields = "
    "line.strip().split(',')\n"
    "            if len(fields) != 3:\n                raise ValueError('bad line: ' + line)\n            name, age, city = fields\n"
    "            rows.append({'name': name, 'age': int(age), 'city': city})\n    return rows\n";

struct Task {
  const char* name;
  std::string prompt;
  bool chat = true;
};

const std::vector<Task>& tasks() {
  static const std::vector<Task> all = {
      {"repeat_text", "Repeat the following text exactly:\n\n" + kStory},
      {"replace_word",
       "Rewrite the following text, replacing the word \"lamp\" with \"lantern\". Keep everything else unchanged.\n\n" + kStory},
      {"edit_code", "Rename the variable `rows` to `records` in this code. Output the whole code.\n\n```python\n" + kCode + "```"},
      {"second_version", "Version 1:\n" + kStory + "\n\nVersion 2, with one word changed:\n", false},
      {"code_again", "```python\n" + kCode + "```\n\nThe same code with another function name:\n\n```python\ndef read_table(path):\n",
       false},
      {"new_story", "Write a story about a fox who learns to bake bread."},
      {"explain", "Explain how a bicycle stays upright."},
      {"new_text", "It was the first morning of the long winter, and", false},
  };
  return all;
}

LoadedModel& smollm2() {
  static LoadedModel loaded = [] {
    auto result = load_model(testing::smollm2_path(), {.threads = 2, .isa = ""});
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
  }();
  return loaded;
}

std::vector<TokenId> prompt_ids(const Task& task) {
  LoadedModel& loaded = smollm2();
  if (!task.chat) return loaded.tokenizer->encode(task.prompt);
  return encode_rendered(*loaded.tokenizer, render_chat(loaded, text::Messages().user(task.prompt)).value());
}

struct Run {
  std::vector<TokenId> tokens;  // prompt and answer
  double seconds = 0;           // of all steps behind the first token
  std::size_t steps = 0;
};

// One sequence, greedy or sampled; without a speculator plain.
Run decode(const std::vector<TokenId>& prompt, const sampling::SamplingParams& params, speculation::Speculator* speculator) {
  LoadedModel& loaded = smollm2();
  Runner runner(*loaded.model, {.max_tokens = 2048});
  const SeqId id = runner.open(static_cast<std::int32_t>(prompt.size())).value();
  sampling::Sampler sampler(params);
  sampler.see_prompt(prompt);
  Run run{.tokens = prompt};
  auto logits = runner.prefill(id, prompt, 256).value();
  run.tokens.push_back(sampler.sample(logits.row_span(0), prompt.size()).value());
  const std::size_t end = prompt.size() + kAnswer;
  const TimePoint start = steady_clock().now();
  TimePoint turn = start;
  bool ended = false;
  while (!ended) {
    std::vector<TokenId> rows = {run.tokens.back()};
    std::span<const TokenId> guesses;
    if (speculator != nullptr) {
      const speculation::SequenceView view{id, run.tokens, static_cast<std::int32_t>(end - run.tokens.size() - 1)};
      for (const auto& draft : speculator->propose({&view, 1})) guesses = draft.guesses;
      rows.insert(rows.end(), guesses.begin(), guesses.end());
    }
    const Piece pieces[] = {{id, rows, Outputs::kAll}};
    logits = runner.step(pieces).value();
    const std::size_t known = run.tokens.size();
    const std::size_t right =
        speculation::verify(
            guesses,
            [&](std::size_t i) -> Result<speculation::Drawn> {
              WEIR_ASSIGN(const TokenId token, sampler.sample(logits.row_span(static_cast<std::int64_t>(i)), known + i));
              ended = known + i + 1 >= end || std::ranges::binary_search(loaded.tokenizer->end_of_generation, token);
              return speculation::Drawn{.token = token, .ends = ended};
            },
            run.tokens)
            .value();
    if (const Status status = runner.truncate(id, static_cast<std::int64_t>(known + right)); !status)
      throw std::runtime_error(status.error().message);
    ++run.steps;
    const TimePoint now = steady_clock().now();
    if (speculator != nullptr) {
      if (std::getenv("WEIR_TRACE")) std::fprintf(stderr, "%zu/%zu ", right, guesses.size());
      const speculation::Verified verified{id, static_cast<std::int32_t>(guesses.size()), static_cast<std::int32_t>(right)};
      speculator->completed({.decode_rows = static_cast<std::int64_t>(rows.size()), .elapsed = now - turn, .verified = {&verified, 1}});
    }
    turn = now;
  }
  run.seconds = to_seconds(steady_clock().now() - start);
  if (speculator != nullptr) speculator->forget(id);
  return run;
}

// Decode steps of 1 to 32 rows, as an engine measures them before the first request.
void calibrate(speculation::Speculator& speculator) {
  LoadedModel& loaded = smollm2();
  Runner runner(*loaded.model, {.max_tokens = 512});
  const SeqId id = runner.open().value();
  const std::vector<TokenId> rows(32, 42);
  if (!runner.prefill(id, rows, 32)) throw std::runtime_error("no room");
  for (const std::size_t count : {1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
    const TimePoint start = steady_clock().now();
    const Piece pieces[] = {{id, std::span(rows).first(count), Outputs::kAll}};
    if (!runner.step(pieces)) throw std::runtime_error("no room");
    speculator.calibrate(static_cast<std::int64_t>(count), steady_clock().now() - start);
  }
}

speculation::Speculator look_up(bool calibrated) {
  std::vector<std::unique_ptr<speculation::DraftSource>> sources;
  sources.push_back(std::make_unique<speculation::LookupSource>());
  speculation::Speculator speculator({}, std::move(sources));
  if (calibrated) calibrate(speculator);
  return speculator;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Args: task, temperature in tenths, whether row costs were measured before.
void prompt_lookup(benchmark::State& state) {
  const Task& task = tasks()[static_cast<std::size_t>(state.range(0))];
  const auto prompt = prompt_ids(task);
  const sampling::SamplingParams params{.temperature = static_cast<float>(state.range(1)) / 10, .seed = 7};
  speculation::Speculator speculator = look_up(state.range(2) != 0);
  std::vector<double> plain, guessed, ratios;
  Run last;
  bool guesses_first = false;  // in turn: whoever runs second finds the machine warmer, or slower
  for (auto _ : state) {
    Run reference;
    if (guesses_first) last = decode(prompt, params, &speculator);
    reference = decode(prompt, params, nullptr);
    if (!guesses_first) last = decode(prompt, params, &speculator);
    guesses_first = !guesses_first;
    if (last.tokens != reference.tokens) state.SkipWithError("guesses changed the tokens");
    plain.push_back(reference.seconds);
    guessed.push_back(last.seconds);
    ratios.push_back(reference.seconds / last.seconds);
  }
  state.SetLabel(task.name);
  state.counters["plain_tok_s"] = static_cast<double>(last.tokens.size() - prompt.size() - 1) / median(plain);
  state.counters["speedup"] = median(ratios);
  state.counters["tok_step"] = static_cast<double>(last.tokens.size() - prompt.size() - 1) / static_cast<double>(last.steps);
  state.counters["drafted"] = static_cast<double>(speculator.stats().drafted) / static_cast<double>(plain.size());
  state.counters["right%"] =
      100. * static_cast<double>(speculator.stats().right) / static_cast<double>(std::max<std::int64_t>(1, speculator.stats().drafted));
  if (std::getenv("WEIR_SHOW_TEXT") != nullptr)
    std::fprintf(stderr, "%s: %s\n", task.name, smollm2().tokenizer->decode(std::span(last.tokens).subspan(prompt.size()), true).c_str());
}
BENCHMARK(prompt_lookup)->ArgsProduct({{0, 1, 2, 3, 4, 5, 6, 7}, {0, 8}, {0, 1}})->Iterations(4)->Unit(benchmark::kMillisecond);

// Args: rows, context.
void rows_of_a_step(benchmark::State& state) {
  LoadedModel& loaded = smollm2();
  Runner runner(*loaded.model, {.max_tokens = 2048});
  const SeqId id = runner.open().value();
  const std::vector<TokenId> context(static_cast<std::size_t>(state.range(1)), 42);
  const std::vector<TokenId> rows(static_cast<std::size_t>(state.range(0)), 42);
  benchmark::DoNotOptimize(runner.prefill(id, context, 256));
  for (auto _ : state) {
    const Piece pieces[] = {{id, rows, Outputs::kAll}};
    benchmark::DoNotOptimize(runner.step(pieces));
    benchmark::DoNotOptimize(runner.truncate(id, static_cast<std::int64_t>(context.size())));
  }
}
BENCHMARK(rows_of_a_step)
    ->ArgsProduct({{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 24, 32}, {256}})
    ->MinTime(0.3)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir::engine
