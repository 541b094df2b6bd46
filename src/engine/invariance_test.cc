// SPDX-License-Identifier: Apache-2.0
// Design invariant 1 on the real model: the logits of a sequence are the same to the last bit whatever its neighbours, the
// number of threads and the chunks of its prompt, with int8 and with float activations.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/testing.h"
#include "engine/loaded_model.h"
#include "engine/runner.h"
#include "sampling/logprobs.h"

namespace weir::engine {
namespace {

constexpr std::size_t kGenerated = 5;

struct Setting {
  int threads = 1;
  kernels::Activations activations = kernels::Activations::kInt8;
  std::int32_t chunk = 64;
};

// The bits of every logit row that a greedy run reads, and its tokens.
struct Trace {
  std::vector<TokenId> tokens;
  std::vector<float> logits;
  bool same_as(const Trace& other) const {
    return tokens == other.tokens && logits.size() == other.logits.size() &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
};

std::vector<std::vector<TokenId>> prompts(const LoadedModel& loaded) {
  const char* texts[] = {"Once upon a time, in a small village by the sea,",
                         "The capital of France is",
                         "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
                         "1 2 3 4 5 6 7",
                         "Water boils at",
                         "A weir is a low dam built across a river to raise the level of water upstream or to regulate its flow.",
                         "x",
                         "Les poissons rouges sont"};
  std::vector<std::vector<TokenId>> ids;
  for (const char* text : texts) ids.push_back(loaded.tokenizer->encode(text));
  return ids;
}

void record(Trace& trace, std::span<const float> logits) {
  trace.tokens.push_back(sampling::argmax(logits));
  trace.logits.insert(trace.logits.end(), logits.begin(), logits.end());
}

Trace alone(LoadedModel& loaded, std::span<const TokenId> prompt, std::int32_t chunk) {
  Runner runner(*loaded.model, {.max_tokens = 512});
  const SeqId sequence = runner.open(static_cast<std::int32_t>(prompt.size())).value();
  Trace trace;
  record(trace, runner.prefill(sequence, prompt, chunk).value().row_span(0));
  while (trace.tokens.size() < kGenerated) {
    const TokenId next = trace.tokens.back();
    const Piece pieces[] = {{sequence, {&next, 1}, Outputs::kLast}};
    record(trace, runner.step(pieces).value().row_span(0));
  }
  return trace;
}

// All prompts at once, the chunks of some beside the decode rows of others.
std::vector<Trace> together(LoadedModel& loaded, const std::vector<std::vector<TokenId>>& prompts, std::int32_t chunk) {
  Runner runner(*loaded.model, {.max_tokens = 2048, .max_sequences = static_cast<std::int32_t>(prompts.size())});
  std::vector<SeqId> ids;
  for (const auto& prompt : prompts) ids.push_back(runner.open(static_cast<std::int32_t>(prompt.size())).value());
  std::vector<Trace> traces(prompts.size());
  std::vector<std::size_t> fed(prompts.size(), 0);
  while (true) {
    std::vector<Piece> pieces;
    std::vector<std::size_t> owners;
    std::vector<TokenId> next(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      if (traces[i].tokens.size() == kGenerated) continue;
      const std::size_t left = prompts[i].size() - fed[i];
      if (left > 0) {
        const std::size_t take = std::min(left, static_cast<std::size_t>(chunk));
        pieces.push_back({ids[i], std::span(prompts[i]).subspan(fed[i], take), take == left ? Outputs::kLast : Outputs::kNone, true});
        fed[i] += take;
        if (take == left) owners.push_back(i);
      } else {
        next[i] = traces[i].tokens.back();
        pieces.push_back({ids[i], {&next[i], 1}, Outputs::kLast});
        owners.push_back(i);
      }
    }
    if (pieces.empty()) return traces;
    const kernels::Matrix rows = runner.step(pieces).value();
    for (std::size_t r = 0; r < owners.size(); ++r) record(traces[owners[r]], rows.row_span(static_cast<std::int64_t>(r)));
  }
}

LoadedModel load(const Setting& setting) {
  auto loaded = load_model(testing::smollm2_path(), {.threads = setting.threads, .activations = setting.activations, .isa = ""});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return std::move(*loaded);
}

class Invariance : public ::testing::TestWithParam<kernels::Activations> {};

TEST_P(Invariance, NeitherThreadsNorChunksNorNeighboursChangeABit) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  LoadedModel one = load({.threads = 1, .activations = GetParam()});
  LoadedModel two = load({.threads = 2, .activations = GetParam()});
  const auto all = prompts(one);
  const auto batched = together(two, all, 7);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Trace reference = alone(one, all[i], 64);
    EXPECT_TRUE(batched[i].same_as(reference)) << "prompt " << i << " in a batch of 8, in chunks of 7, with 2 threads";
    if (i % 3 != 0) continue;
    EXPECT_TRUE(alone(two, all[i], 64).same_as(reference)) << "prompt " << i << " with 2 threads";
    EXPECT_TRUE(alone(one, all[i], 7).same_as(reference)) << "prompt " << i << " in chunks of 7";
  }
}

// The logits of all rows of a prompt that runs in pieces.
std::vector<float> rows_in_pieces(LoadedModel& loaded, std::span<const TokenId> prompt, std::size_t piece, DType kv_type) {
  Runner runner(*loaded.model, {.max_tokens = 128, .kv_type = kv_type});
  const SeqId sequence = runner.open(static_cast<std::int32_t>(prompt.size())).value();
  std::vector<float> all;
  for (std::size_t i = 0; i < prompt.size(); i += piece) {
    const Piece pieces[] = {{sequence, prompt.subspan(i, std::min(piece, prompt.size() - i)), Outputs::kAll}};
    const kernels::Matrix out = runner.step(pieces).value();
    for (std::int64_t r = 0; r < out.rows; ++r) all.insert(all.end(), out.row_span(r).begin(), out.row_span(r).end());
  }
  return all;
}

std::vector<std::string> tables_of_this_machine() {
  std::vector<std::string> tables;
  for (const char* isa : {"avx2", "avx2_vnni", "avx512", "avx512_bf16", "amx"}) {
    if (kernels::make_cpu_backend({.threads = 1, .isa = isa})) tables.emplace_back(isa);
  }
  return tables;
}

// Whether a position ran in a long piece or alone never shows, so that what the cache keeps of one serves the other
// (kvcache::CacheOptions::phases_differ): for each table that this machine has, and each type of keys and values.
class Phases : public ::testing::TestWithParam<std::string> {};

TEST_P(Phases, PromptAndAnswerRowsGiveTheSameBits) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const char* set = std::getenv("WEIR_WEIGHT_CACHE");
  const std::string before = set ? set : "";
  ::setenv("WEIR_WEIGHT_CACHE", "off", 1);  // packed for this test alone
  auto loaded = load_model(testing::smollm2_path(), {.threads = 2, .activations = kernels::Activations::kInt8, .isa = GetParam()});
  set ? ::setenv("WEIR_WEIGHT_CACHE", before.c_str(), 1) : ::unsetenv("WEIR_WEIGHT_CACHE");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const auto prompt = loaded->tokenizer->encode(
      "A weir is a low dam built across a river to raise the level of water upstream or to regulate its flow. Fish pass it by a ladder.");
  ASSERT_GT(prompt.size(), 24u);
  for (const DType kv_type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    const auto whole = rows_in_pieces(*loaded, prompt, prompt.size(), kv_type);
    for (const std::size_t piece : {1, 3, 7}) {
      const auto pieces = rows_in_pieces(*loaded, prompt, piece, kv_type);
      ASSERT_EQ(pieces.size(), whole.size());
      EXPECT_EQ(std::memcmp(pieces.data(), whole.data(), whole.size() * sizeof(float)), 0)
          << dtype_name(kv_type) << " in pieces of " << piece;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Phases);  // where only the reference runs
INSTANTIATE_TEST_SUITE_P(Tables, Phases, ::testing::ValuesIn(tables_of_this_machine()), [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Activations, Invariance, ::testing::Values(kernels::Activations::kInt8, kernels::Activations::kF32),
                         [](const auto& info) { return info.param == kernels::Activations::kInt8 ? "Int8" : "Float"; });

}  // namespace
}  // namespace weir::engine
