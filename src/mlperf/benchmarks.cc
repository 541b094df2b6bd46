// SPDX-License-Identifier: Apache-2.0
#include "mlperf/benchmarks.h"

#include <fmt/core.h>

#include <algorithm>

namespace weir::mlperf {
namespace {

constexpr std::string_view kTest06 = "TEST06", kNone = "none";

constexpr Benchmark kBenchmarks[] = {
    {"llama2-70b",
     "OpenOrca",
     24576,
     {2000, 200},
     {450, 40},
     0,
     true,
     1024,
     2,
     "ROUGE-1 44.4312, ROUGE-2 22.0352, ROUGE-L 28.6162; at least 90 % of 294.45 tokens a sample",
     kTest06,
     kNone},
    {"llama3_1-8b",
     "CNN/DailyMail",
     13368,
     {2000, 100},
     {500, 30},
     0,
     true,
     128,
     2,
     "ROUGE-1 42.9865, ROUGE-2 20.1235, ROUGE-L 29.9881; at least 90 % of 8,167,644 characters in all",
     kTest06,
     kNone},
    {"llama3_1-8b-edge", "CNN/DailyMail", 5000, {}, {}, 0, true, 128, 2, "as llama3_1-8b, over 5,000 samples", kTest06, kNone},
    {"llama3_1-405b",
     "LongBench, LDC, RULER, GovReport",
     8313,
     {6000, 175},
     {4500, 80},
     0,
     true,
     20000,
     2,
     "ROUGE-L 21.6666, exact match 90.1335; 684.68 tokens a sample within 10 %",
     kTest06,
     kNone},
    {"mixtral-8x7b",
     "OpenOrca, GSM8K, MBXP",
     15000,
     {2000, 200},
     {},
     0,
     true,
     1024,
     2,
     "ROUGE-1 45.5989, GSM8K 73.66, MBXP 60.16; 144.84 tokens a sample within 10 %",
     kTest06,
     kNone},
    {"deepseek-r1",
     "4,388 samples",
     4388,
     {2000, 80},
     {1500, 15},
     0,
     true,
     20000,
     2,
     "exact match 81.9132",
     kTest06,
     "Interactive: EAGLE, 3 steps, top-k 1"},
    {"gpt-oss-120b",
     "6,396 for performance; AIME25 x8, GPQA x5, LiveCodeBench v6 x3 for accuracy (4,395)",
     6396,
     {3000, 80},
     {2000, 15},
     0,
     true,
     10000,
     2,
     "83.13 (answers of up to 32,768 tokens)",
     "TEST07, TEST09",
     "Interactive: EAGLE3, 3 steps, top-k 1"},
    {"qwen3-vl-235b-a22b", "with images", 48289, {}, {}, 12000, false, 0, 1, "hierarchical F1 0.7824", kNone, kNone},
};

std::string bounds(TokenBounds b) { return b.ttft_ms == 0 ? "-" : fmt::format("{}/{}", b.ttft_ms, b.tpot_ms); }

json::Value to_json(TokenBounds b) {
  if (b.ttft_ms == 0) return nullptr;
  return json::Object{{"ttft_ms", b.ttft_ms}, {"tpot_ms", b.tpot_ms}};
}

}  // namespace

std::span<const Benchmark> benchmarks() { return kBenchmarks; }

const Benchmark* find_benchmark(std::string_view key) {
  const auto found = std::ranges::find(kBenchmarks, key, &Benchmark::key);
  return found == std::end(kBenchmarks) ? nullptr : found;
}

std::string benchmark_table() {
  std::string out = fmt::format("{:<19} {:>8} {:>10} {:>11} {:>7}  {}\n", "benchmark", "samples", "Server", "Interactive", "answer",
                                "accuracy: 99 % of the reference");
  out += fmt::format("{:<19} {:>8} {:>10} {:>11} {:>7}\n", "", "", "TTFT/TPOT", "ms at p99", "tokens");
  for (const Benchmark& b : kBenchmarks) {
    const std::string server = b.server_latency_ms > 0 ? fmt::format("{} whole", b.server_latency_ms) : bounds(b.server);
    out += fmt::format("{:<19} {:>8} {:>10} {:>11} {:>7}  {}\n", b.key, b.samples, server, bounds(b.interactive),
                       b.max_tokens > 0 ? fmt::format("{}", b.max_tokens) : "-", b.accuracy);
    out += fmt::format("{:<19} {}; compliance: {}; guessing tokens: {}\n", "", b.dataset, b.compliance, b.speculation);
  }
  out += fmt::format(
      "\nSingleStream judges the 90th percentile, MultiStream the 99th of queries of 8, Server and Interactive the 99th. Each runs for at "
      "least\n"
      "600 s; MultiStream has at least 662 queries, Offline at least 24,576 samples or the whole data set, Server 459 and more by early\n"
      "stopping. Answers, prompts or activations must not be kept from sample to sample, and equal queries must not be joined.\n"
      "From: {}.\n",
      kBenchmarkSource);
  return out;
}

json::Array benchmarks_json() {
  json::Array out;
  for (const Benchmark& b : kBenchmarks) {
    out.push_back(json::Object{{"key", b.key},
                               {"dataset", b.dataset},
                               {"samples", b.samples},
                               {"server", to_json(b.server)},
                               {"interactive", to_json(b.interactive)},
                               {"server_latency_ms", b.server_latency_ms},
                               {"token_latencies", b.token_latencies},
                               {"max_tokens", b.max_tokens},
                               {"min_tokens", b.min_tokens},
                               {"accuracy", b.accuracy},
                               {"compliance", b.compliance},
                               {"speculation", b.speculation},
                               {"source", kBenchmarkSource}});
  }
  return out;
}

}  // namespace weir::mlperf
