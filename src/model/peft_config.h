// SPDX-License-Identifier: Apache-2.0
// adapter_config.json of PEFT: rank and factor of each module, and what this build cannot do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::model {

class PeftConfig {
 public:
  // kUnsupported naming the key that asks for something else than plain LoRA.
  static Result<PeftConfig> read(const json::Object& config);

  // Of a module named as in the model ("model.layers.0.self_attn.q_proj").
  std::int64_t rank(std::string_view module) const;
  double scale(std::string_view module) const;  // alpha / rank, or alpha / sqrt(rank) (rsLoRA, arXiv:2312.03732)

 private:
  using Patterns = std::vector<std::pair<std::string, double>>;
  static Result<Patterns> patterns(const json::Object& config, std::string_view key);
  static double value(const Patterns& patterns, std::string_view module, double fallback);

  std::int64_t rank_ = 8;
  double alpha_ = 8;
  bool root_ = false;
  Patterns ranks_, alphas_;
};

}  // namespace weir::model
