// SPDX-License-Identifier: Apache-2.0
// Multiple choice by likelihood, by the convention of lm-evaluation-harness (its loglikelihood and multiple_choice tasks), so that scores
// can be compared: spaces at the context's end belong to the continuation, both are tokenised as one text, and the choice whose tokens are
// the likeliest after the context wins.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/scoring.h"

namespace weir::eval {

struct ChoiceTask {
  std::string context;
  std::vector<std::string> choices;
  std::int64_t answer = -1;  // the right one's index; -1: not known
};

struct ChoiceScores {
  std::vector<engine::ContinuationScore> choices;
  std::int64_t likeliest = 0;            // by the sum of log probabilities; ties go to the first
  std::int64_t likeliest_by_length = 0;  // by that sum over the characters of the choice as it is written
};

struct ChoicesResult {
  std::vector<ChoiceScores> tasks;
  std::int64_t answered = 0;                                    // tasks whose answer is known
  double accuracy = 0, accuracy_error = 0;                      // acc and its standard error
  double accuracy_by_length = 0, accuracy_by_length_error = 0;  // acc_norm
  double seconds = 0;
};

// JSON lines of {"context": "…", "choices": ["…", …], "answer": 0}. kCorrupt names the line.
Result<std::vector<ChoiceTask>> read_choice_tasks(const std::filesystem::path& file);

// `progress(done, total)` is called after each task; returning false stops with kCancelled.
Result<ChoicesResult> score_choices(engine::LoadedModel& loaded, std::span<const ChoiceTask> tasks,
                                    const std::function<bool(std::size_t, std::size_t)>& progress = {});

json::Object to_json(const ChoicesResult& result);

}  // namespace weir::eval
