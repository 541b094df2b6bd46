// SPDX-License-Identifier: Apache-2.0
#include "mlperf/accuracy.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace weir::mlperf {
namespace {

// Characters, not bytes, as Python's len().
std::int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

Result<Accuracy> score_log(const std::vector<LoggedAnswer>& log, const Dataset& dataset,
                           const std::function<std::string(std::string_view)>& decode) {
  std::map<std::uint64_t, const LoggedAnswer*> by_sample;
  for (const LoggedAnswer& answer : log) {
    if (answer.sample >= dataset.samples.size())
      return fail(ErrorCode::kCorrupt, "the accuracy log holds sample {}, and {} has {}", answer.sample, dataset.name,
                  dataset.samples.size());
    by_sample[answer.sample] = &answer;
  }
  Accuracy out;
  out.missing = dataset.samples.size() - by_sample.size();
  double tokens = 0;
  for (const auto& [index, logged] : by_sample) {
    ScoredSample sample{.sample = static_cast<std::size_t>(index), .answer = decode(logged->data), .tokens = logged->tokens, .score = {}};
    out.characters += characters(sample.answer);
    tokens += static_cast<double>(std::max<std::int64_t>(logged->tokens, 0));
    if (const auto& reference = dataset.samples[sample.sample].answer) {
      sample.score = score(*reference, sample.answer);
      ++out.scored;
      out.exact_match += sample.score.exact ? 1 : 0;
      out.rouge1 += sample.score.rouge1;
      out.rouge2 += sample.score.rouge2;
      out.rouge_l += sample.score.rouge_l;
    }
    out.samples.push_back(std::move(sample));
  }
  if (!out.samples.empty()) out.tokens_per_sample = tokens / static_cast<double>(out.samples.size());
  for (double* mean : {&out.exact_match, &out.rouge1, &out.rouge2, &out.rouge_l})
    *mean = out.scored > 0 ? 100 * *mean / static_cast<double>(out.scored) : 0;
  return out;
}

std::string to_text(const Accuracy& a) {
  std::string out = fmt::format("samples {}, missing {}, with a reference {}\n", a.samples.size(), a.missing, a.scored);
  if (a.scored > 0)
    out += fmt::format("exact match {:.4f}   ROUGE-1 {:.4f}   ROUGE-2 {:.4f}   ROUGE-L {:.4f}   (per cent)\n", a.exact_match, a.rouge1,
                       a.rouge2, a.rouge_l);
  return out + fmt::format("tokens per sample {:.2f}, characters in all {}\n", a.tokens_per_sample, a.characters);
}

json::Object to_json(const Accuracy& a, const Dataset& dataset) {
  json::Array samples;
  for (const ScoredSample& s : a.samples) {
    json::Object sample{{"sample", s.sample}, {"answer", s.answer}, {"tokens", s.tokens}};
    if (const auto& reference = dataset.samples[s.sample].answer) {
      sample["reference"] = *reference;
      sample["exact"] = s.score.exact;
      sample["rouge1"] = s.score.rouge1;
      sample["rouge2"] = s.score.rouge2;
      sample["rougeL"] = s.score.rouge_l;
    }
    samples.push_back(std::move(sample));
  }
  json::Object out{
      {"dataset", dataset.name}, {"dataset_sha256", dataset.sha256},         {"count", a.samples.size()}, {"missing", a.missing},
      {"scored", a.scored},      {"tokens_per_sample", a.tokens_per_sample}, {"gen_len", a.characters}};
  if (a.scored > 0) {
    out["exact_match"] = a.exact_match;
    out["rouge1"] = a.rouge1;
    out["rouge2"] = a.rouge2;
    out["rougeL"] = a.rouge_l;
  }
  out["samples"] = std::move(samples);
  return out;
}

}  // namespace weir::mlperf
