// SPDX-License-Identifier: Apache-2.0
#include "engine/step_cost.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weir::engine {
namespace {

constexpr std::array<const char*, kOpKinds> kNames = {
    "embedding",      "norm",    "qkv",  "rope",       "store_kv",           "attention", "attention_out",
    "router",         "gate_up", "down", "activation", "recurrent_products", "recurrent", "head",
    "other_products", "rest"};

constexpr std::array<DType, kOperands> kTypes = {DType::kQ8_0, DType::kF16, DType::kBF16, DType::kF32};

struct Best {
  double seconds = 0;
  const char* by = "rest";
};

Best best_of(const OpCost& cost, const kernels::Limits& limits, kernels::Activations activations) {
  kernels::Work work;
  work.bytes = cost.bytes;
  for (std::size_t i = 0; i < kOperands; ++i) {
    if (cost.multiply_adds[i] > 0) work.ops[kernels::arithmetic_for(kTypes[i], activations, limits)] += 2 * cost.multiply_adds[i];
  }
  const kernels::BestTime best = kernels::best_time(work, limits);
  return {best.seconds, best.bound};
}

// Where a part is what the time is made of.
void name_largest(Bound& bound, const char* compute_by) {
  const double most = std::max({bound.memory_s, bound.compute_s, bound.rest_s});
  bound.by = most <= 0 ? "rest" : most == bound.memory_s ? "memory" : most == bound.compute_s ? compute_by : "rest";
}

bool is_memory(const Best& best) { return std::string_view(best.by) == "memory"; }

}  // namespace

const char* op_name(OpKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

double OpCost::all_multiply_adds() const { return std::accumulate(multiply_adds.begin(), multiply_adds.end(), 0.0); }

OpCost& OpCost::operator+=(const OpCost& other) {
  seconds += other.seconds;
  bytes += other.bytes;
  for (std::size_t i = 0; i < kOperands; ++i) multiply_adds[i] += other.multiply_adds[i];
  calls += other.calls;
  return *this;
}

OpCost StepBreakdown::total() const {
  OpCost total;
  for (const OpCost& op : ops) total += op;
  return total;
}

StepBreakdown& StepBreakdown::operator+=(const StepBreakdown& other) {
  for (std::size_t i = 0; i < kOpKinds; ++i) ops[i] += other.ops[i];
  steps += other.steps;
  return *this;
}

void StepBreakdown::add_share(const StepBreakdown& other, double share) {
  for (std::size_t i = 0; i < kOpKinds; ++i) {
    ops[i].seconds += share * other.ops[i].seconds;
    ops[i].bytes += share * other.ops[i].bytes;
    for (std::size_t j = 0; j < kOperands; ++j) ops[i].multiply_adds[j] += share * other.ops[i].multiply_adds[j];
    ops[i].calls += other.ops[i].calls;
  }
  steps += other.steps;
}

Bound bound_of(const OpCost& cost, const kernels::Limits& limits, kernels::Activations activations) {
  const Best best = best_of(cost, limits, activations);
  Bound bound{.seconds = cost.seconds};
  (is_memory(best) ? bound.memory_s : bound.compute_s) = best.seconds;
  bound.rest_s = std::max(0.0, cost.seconds - best.seconds);
  name_largest(bound, best.by);
  return bound;
}

Bound bound_of(const StepBreakdown& step, const kernels::Limits& limits, kernels::Activations activations) {
  Bound bound;
  std::map<std::string_view, double> computing;  // by arithmetic; the views are of string literals
  for (const OpCost& op : step.ops) {
    const Best best = best_of(op, limits, activations);
    bound.seconds += op.seconds;
    (is_memory(best) ? bound.memory_s : bound.compute_s) += best.seconds;
    bound.rest_s += std::max(0.0, op.seconds - best.seconds);
    if (!is_memory(best)) computing[best.by] += best.seconds;
  }
  const auto most = std::ranges::max_element(computing, {}, [](const auto& entry) { return entry.second; });
  name_largest(bound, most == computing.end() ? "rest" : most->first.data());
  return bound;
}

json::Object to_json(const StepBreakdown& step) {
  json::Object out;
  const double per_step = 1.0 / static_cast<double>(std::max<std::int64_t>(step.steps, 1));
  for (std::size_t i = 0; i < kOpKinds; ++i) {
    const OpCost& op = step.ops[i];
    if (op.calls == 0 && op.seconds <= 0) continue;
    const double inverse = op.seconds > 0 ? 1e-9 / op.seconds : 0;
    out[kNames[i]] = json::Object{{"ms", op.seconds * 1e3 * per_step},
                                  {"bytes", op.bytes * per_step},
                                  {"gb_per_s", op.bytes * inverse},
                                  {"multiply_adds", op.all_multiply_adds() * per_step},
                                  {"gmadd_per_s", op.all_multiply_adds() * inverse},
                                  {"calls", static_cast<double>(op.calls) * per_step}};
  }
  return out;
}

json::Object to_json(const Bound& bound) {
  return {{"by", bound.by},
          {"ms", bound.seconds * 1e3},
          {"memory_ms", bound.memory_s * 1e3},
          {"compute_ms", bound.compute_s * 1e3},
          {"rest_ms", bound.rest_s * 1e3},
          {"share_of_limit", bound.share_of_limit()}};
}

}  // namespace weir::engine
