// SPDX-License-Identifier: Apache-2.0
#include "model_options.h"

#include <CLI/CLI.hpp>
#include <map>

#include "store/pull.h"
#include "store/resolve.h"
#include "verbs.h"

namespace weir::cli {

void add_model_options(CLI::App& verb, ModelOptions& options, const char* default_activations) {
  options.activations = default_activations;
  verb.add_option("MODEL", options.model, "Catalogue name (see `weir list`), GGUF file, or Hugging Face folder")->required();
  verb.add_option("-t,--threads", options.threads, "Threads to compute with; auto: as many as help, measured once on this machine")
      ->transform(CLI::Transformer(std::map<std::string, int>{{"auto", 0}}))
      ->check(CLI::Range(0, 4096))
      ->default_str("auto");
  verb.add_option("--activations", options.activations, "Activations in products with quantised weights: int8 (fast) or f32 (exact)")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->capture_default_str();
  verb.add_option("--isa", options.isa,
                  "Kernel table: reference, avx2, avx2_vnni, avx512, avx512_bf16, amx; default: WEIR_ISA, else the best this machine runs");
}

kernels::CpuOptions cpu_options(const ModelOptions& options) {
  return {.threads = options.threads,
          .activations = options.activations == "f32" ? kernels::Activations::kF32 : kernels::Activations::kInt8,
          .isa = options.isa};
}

Result<engine::LoadedModel> load(const ModelOptions& options) {
  WEIR_ASSIGN(const auto path, store::resolve(options.model));
  return engine::load_model(path, cpu_options(options));
}

Result<engine::LoadedModel> pull_and_load(const ModelOptions& options) {
  store::ProgressPrinter printer;
  WEIR_ASSIGN(const auto path, store::ensure(options.model, printer.watcher([] { return interrupted(); })));
  return engine::load_model(path, cpu_options(options));
}

}  // namespace weir::cli
