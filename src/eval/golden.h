// SPDX-License-Identifier: Apache-2.0
// Compares a model with stored reference outputs. The formats are told apart by their keys: reference logits and greedy
// runs (as tests/data/smollm2), architecture goldens (tests/data/arch), sentence embeddings (tests/data/minilm).
#pragma once

#include <filesystem>
#include <string>

#include "engine/loaded_model.h"
#include "eval/report.h"

namespace weir::eval {

struct GoldenOptions {
  kernels::Activations activations = kernels::Activations::kF32;  // which tolerances apply to quantised weights
  double tolerance = 0;          // largest logit error; 0 = the file's own, or the project's (tests/data/README.md)
  double epsilon = -1;           // greedy steps whose reference margin is below this are not compared; < 0: 1e-3, int8 0.35
  std::string alternative = {};  // name of an entry of "alt" to compare with instead of the main golden
  std::int32_t chunk = 64;       // rows of a forward pass
  bool as_answer = false;        // rows in the arithmetic of answers, not of prompts, where the two differ
};

// kCorrupt when the file is none of the formats or an id is outside the model's vocabulary.
Result<FileReport> run_golden(engine::LoadedModel& loaded, const std::filesystem::path& file, const GoldenOptions& options);

}  // namespace weir::eval
