// SPDX-License-Identifier: Apache-2.0
// What the requests of a load cost the model behind the server, and what share of a machine's limits that is: options, and the figures.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/service_work.h"
#include "loadgen/scenario.h"

namespace CLI {
class App;
}

namespace weir::cli {

class WorkOptions {
 public:
  void add_to(CLI::App& app);
  // Opens the model's file and measures this machine, or reads the limits of another; before anything else is measured.
  Status prepare();
  // Adds "work" to what a run saw, and a text for people to `text`; nothing without --model-file.
  Status add_to(loadgen::Measured& measured, std::string& text) const;

 private:
  std::string model_, limits_file_, kv_type_ = "bf16", activations_ = "int8";
  DType kv_ = DType::kBF16;
  std::unique_ptr<model::Model> shape_;
  std::optional<kernels::Limits> limits_;
};

}  // namespace weir::cli
