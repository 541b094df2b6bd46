// SPDX-License-Identifier: Apache-2.0
// Any bytes as what the load generator reads from outside: a server's response (whole and byte by byte alike), its events, traces, prompt
// files, and the texts of options.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "loadgen/answer_parser.h"
#include "loadgen/arrivals.h"
#include "loadgen/metrics.h"
#include "loadgen/paced_answer.h"
#include "loadgen/prompts.h"
#include "loadgen/response_reader.h"
#include "loadgen/search.h"

namespace {

using namespace weir::loadgen;

std::string body_of(std::string_view bytes, std::size_t step, ResponseReader& reader) {
  std::string body;
  for (std::size_t at = 0; at < bytes.size() && !reader.done() && !reader.failed(); at += step)
    reader.feed(bytes.substr(at, step), [&](std::string_view piece) { body += piece; });
  return body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ResponseReader whole, pieces;
  const std::string a = body_of(bytes, size + 1, whole), b = body_of(bytes, 1, pieces);
  WEIR_CHECK(whole.done() == pieces.done() && whole.failed() == pieces.failed() && (whole.failed() || a == b));
  (void)parse_event(bytes, true);
  (void)parse_null_request(bytes, true);
  (void)parse_trace(bytes);
  PromptOptions options;
  options.count = 20;
  static const Vocabulary vocabulary(nullptr);
  (void)jsonl_prompts(bytes, options);
  (void)sharegpt_prompts(bytes, options, vocabulary);
  (void)text_prompts(bytes, options, vocabulary);
  if (size > 200) return 0;
  if (const auto process = ArrivalProcess::parse(bytes)) (void)schedule(*process, {.requests = 50, .length = {}}, 1);
  Random random(1);
  if (const auto d = Distribution::parse(bytes, Distribution::Unit::kSeconds)) WEIR_CHECK(d->draw(random) >= 0);
  (void)Slo::parse(bytes);
  (void)parse_stall(bytes);
  (void)parse_levels(bytes);
  return 0;
}
