// SPDX-License-Identifier: Apache-2.0
// What the golden formats share: running ids for all logits, greedy continuation, reading arrays of numbers.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/runner.h"
#include "eval/golden.h"

namespace weir::eval {

Result<std::vector<TokenId>> read_ids(const json::Object& object, std::string_view key, std::int32_t vocab_size);
Result<std::vector<double>> read_doubles(const json::Object& object, std::string_view key);
Result<const json::Array*> read_array(const json::Object& object, std::string_view key);

// Runs the ids as a new sequence and calls `row(position, logits)` for each position. Encoders run in one piece.
Status for_each_row(engine::LoadedModel& loaded, std::span<const TokenId> ids, const GoldenOptions& options,
                    const std::function<void(std::int64_t, std::span<const float>)>& row);

struct GreedyStep {
  TokenId id;
  double log_prob;
  float logit;
};

// The model's choice after the prompt and after each of the reference's tokens: the reference run is followed step by step
// (teacher forcing), so that one near-tie that falls the other way does not make the rest incomparable.
Result<std::vector<GreedyStep>> run_greedy(engine::LoadedModel& loaded, std::span<const TokenId> prompt,
                                           std::span<const TokenId> reference);

// One per format; `root` is the file's object.
Result<FileReport> run_logit_golden(engine::LoadedModel& loaded, const json::Object& root, const GoldenOptions& options);
Result<FileReport> run_greedy_golden(engine::LoadedModel& loaded, const json::Object& root, const GoldenOptions& options);
Result<FileReport> run_architecture_golden(engine::LoadedModel& loaded, const json::Object& root, const GoldenOptions& options);
Result<FileReport> run_embedding_golden(engine::LoadedModel& loaded, const json::Object& root, const GoldenOptions& options);

// Choices against a reference run. Steps whose reference margin is below epsilon are not compared.
struct GreedyComparison {
  std::int64_t compared = 0, equal = 0, near_ties = 0;
  bool ok() const { return compared == equal; }
  std::string detail;  // the first difference
};
GreedyComparison compare_greedy(std::span<const GreedyStep> found, std::span<const TokenId> wanted, std::span<const double> margins,
                                double epsilon);
double greedy_epsilon(const GoldenOptions& options);

}  // namespace weir::eval
