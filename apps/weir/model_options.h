// SPDX-License-Identifier: Apache-2.0
// Options that every verb with a model shares: where it is and how it is computed.
#pragma once

#include <string>

#include "engine/loaded_model.h"

namespace CLI {
class App;
}

namespace weir::cli {

struct ModelOptions {
  std::string model;
  int threads = 0;
  std::string activations;  // "int8" or "f32"
  std::string isa;
};

// MODEL as a positional argument, --threads, --activations, --isa. `default_activations` is what the verb uses unasked.
void add_model_options(CLI::App& verb, ModelOptions& options, const char* default_activations = "int8");

kernels::CpuOptions cpu_options(const ModelOptions& options);

// Finds MODEL (catalogue name, GGUF file or Hugging Face folder) and loads it.
Result<engine::LoadedModel> load(const ModelOptions& options);
// The same, but a model of the catalogue that is not here yet is pulled first.
Result<engine::LoadedModel> pull_and_load(const ModelOptions& options);

}  // namespace weir::cli
