// SPDX-License-Identifier: Apache-2.0
// Tokens a second of SmolLM2's vocabulary on WikiText-2, in one thread; and texts that punish a slow merge.
#include <benchmark/benchmark.h>

#include "base/file_io.h"
#include "base/testing.h"
#include "tokenizer/tokenizer.h"

namespace weir::tokenizer {
namespace {

const Tokenizer& smollm2() {
  static const auto tokenizer = [] {
    const auto file = formats::GgufFile::open(testing::smollm2_path());
    return file ? Tokenizer::from_gguf(*file).value_or(nullptr) : nullptr;
  }();
  return *tokenizer;
}

bool have_model(benchmark::State& state) {
  const bool have = std::filesystem::exists(testing::smollm2_path());
  if (!have) state.SkipWithError("SmolLM2 is not here: run tools/fetch_test_data.py");
  return have;
}

const std::string& wikitext() {
  static const std::string text = read_file(testing::data_path("wikitext2_test.txt")).value_or("");
  return text;
}

void encode(benchmark::State& state, std::string_view text) {
  if (!have_model(state)) return;
  std::size_t ids = 0;
  for (auto _ : state) ids = smollm2().encode(text, {.add_special = false, .parse_special = true}).size();
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
  state.counters["ids"] = static_cast<double>(ids);
}

void BM_WikiTextWhole(benchmark::State& state) { encode(state, wikitext()); }
BENCHMARK(BM_WikiTextWhole)->Unit(benchmark::kMillisecond);

void BM_WikiTextByLines(benchmark::State& state) {
  if (!have_model(state)) return;
  std::size_t ids = 0;
  for (auto _ : state) {
    ids = 0;
    for (std::string_view rest = wikitext(); !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      ids += smollm2().encode(rest.substr(0, end), {.add_special = false}).size();
      rest.remove_prefix(end);
    }
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * wikitext().size()));
  state.counters["ids"] = static_cast<double>(ids);
}
BENCHMARK(BM_WikiTextByLines)->Unit(benchmark::kMillisecond);

void BM_OneLetter(benchmark::State& state) { encode(state, std::string(static_cast<std::size_t>(state.range(0)), 'a')); }
BENCHMARK(BM_OneLetter)->Arg(1 << 16)->Arg(1 << 20)->Unit(benchmark::kMillisecond);

void BM_NoSpaces(benchmark::State& state) {
  std::string text;
  for (char c : wikitext()) {
    if (c != ' ' && c != '\n' && (static_cast<unsigned char>(c) & 0x80) == 0 && std::isalpha(static_cast<unsigned char>(c))) text += c;
  }
  encode(state, text);
}
BENCHMARK(BM_NoSpaces)->Unit(benchmark::kMillisecond);

void BM_Decode(benchmark::State& state) {
  if (!have_model(state)) return;
  const auto ids = smollm2().encode(wikitext(), {.add_special = false});
  for (auto _ : state) benchmark::DoNotOptimize(smollm2().decode(ids));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * wikitext().size()));
}
BENCHMARK(BM_Decode)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir::tokenizer
