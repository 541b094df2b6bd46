// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: router, experts (a tensor each, or all in one) and the shared expert.
#include "model/weights_loader.h"

namespace weir::model {
namespace {

Linear row_part(const TensorView& matrix, std::int64_t begin, std::int64_t count) {
  return {kernels::Weight{matrix.row_slice(begin, count)}, {}};
}

Vector row_of(const Vector& table, std::int64_t row, std::int64_t cols) {
  if (table.empty()) return {};
  return {table.begin() + row * cols, table.begin() + (row + 1) * cols};
}

}  // namespace

Status WeightReader::expert_tensors(const std::string& prefix, ExpertWeights& out) {
  const Names& names = plan_.names;
  for (std::size_t e = 0; e < out.experts.size(); ++e) {
    const bool old_gguf = names.experts.empty();  // "ffn_gate.0" and so on, as the first mixtures were converted
    const FfnNames each =
        old_gguf ? FfnNames{fmt::format("ffn_gate.{}", e), fmt::format("ffn_up.{}", e), fmt::format("ffn_down.{}", e), ""} : names.expert;
    const std::string base = old_gguf ? prefix : fmt::format("{}{}{}.", prefix, names.experts, e);
    WEIR_TRY(ffn(base, each, plan_.expert_size, true, out.experts[e]));
  }
  return {};
}

// [experts, out, in] for gate, up and down; gate and up may be one tensor with the gates on top.
Status WeightReader::stacked_experts(const std::string& prefix, ExpertWeights& out) {
  const Names& names = plan_.names;
  const std::int64_t count = plan_.traits.experts.experts, inner = plan_.expert_size, hidden = plan_.traits.hidden;
  const auto biases = [&](const std::string& full, std::int64_t size) -> Result<Vector> {
    const std::string base = full.substr(0, full.rfind(".weight"));
    return bias(prefix + base, count * size, plan_.expert_bias);
  };
  WEIR_ASSIGN(TensorView down, source_.matrix(prefix + names.stacked_down, {count, hidden, inner}));
  WEIR_ASSIGN(Vector down_bias, biases(names.stacked_down, hidden));
  for (std::int64_t e = 0; e < count; ++e) {
    FfnWeights& expert = out.experts[static_cast<std::size_t>(e)];
    expert.down = {kernels::Weight{down.slice(e)}, row_of(down_bias, e, hidden)};
  }
  if (!names.stacked_gate_up.empty() && source_.has(prefix + names.stacked_gate_up)) {
    WEIR_ASSIGN(TensorView both, source_.matrix(prefix + names.stacked_gate_up, {count, 2 * inner, hidden}));
    for (std::int64_t e = 0; e < count; ++e) {
      FfnWeights& expert = out.experts[static_cast<std::size_t>(e)];
      expert.gate = row_part(both, 2 * inner * e, inner);
      expert.up = row_part(both, 2 * inner * e + inner, inner);
    }
    return {};
  }
  WEIR_ASSIGN(TensorView gate, source_.matrix(prefix + names.stacked_gate, {count, inner, hidden}));
  WEIR_ASSIGN(TensorView up, source_.matrix(prefix + names.stacked_up, {count, inner, hidden}));
  WEIR_ASSIGN(Vector gate_bias, biases(names.stacked_gate, inner));
  WEIR_ASSIGN(Vector up_bias, biases(names.stacked_up, inner));
  for (std::int64_t e = 0; e < count; ++e) {
    FfnWeights& expert = out.experts[static_cast<std::size_t>(e)];
    expert.gate = {kernels::Weight{gate.slice(e)}, row_of(gate_bias, e, inner)};
    expert.up = {kernels::Weight{up.slice(e)}, row_of(up_bias, e, inner)};
  }
  return {};
}

Status WeightReader::shared_experts(const std::string& prefix, ExpertWeights& out) {
  const Names& names = plan_.names;
  if (plan_.shared_size == 0) return {};
  WEIR_TRY(ffn(prefix, names.shared, plan_.shared_size, true, out.shared));
  if (names.shared_gate.empty()) return {};
  WEIR_ASSIGN(out.shared_gate, linear(prefix + names.shared_gate, 1, plan_.traits.hidden, Bias::kNone));
  return {};
}

Status WeightReader::experts(const std::string& prefix, ExpertWeights& out) {
  const Names& names = plan_.names;
  const std::int64_t count = plan_.traits.experts.experts;
  WEIR_ASSIGN(out.router, linear(prefix + names.router, count, plan_.traits.hidden, plan_.router_bias));
  if (!names.router_correction.empty()) {
    WEIR_ASSIGN(out.router_correction, source_.vector(prefix + names.router_correction, count));
  }
  out.experts.resize(static_cast<std::size_t>(count));
  WEIR_TRY(shared_experts(prefix, out));
  if (plan_.expert_storage == ExpertStorage::kInterleaved) return interleaved_experts(prefix, out);
  const bool stacked = !names.stacked_down.empty() && source_.has(prefix + names.stacked_down);
  return stacked ? stacked_experts(prefix, out) : expert_tensors(prefix, out);
}

}  // namespace weir::model
