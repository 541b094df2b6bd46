// SPDX-License-Identifier: Apache-2.0
// What a step cost, by kind of operation, and what bounded it: each kind's time beside what the machine would need at best for the bytes
// it read and the multiply-adds it did. Plain figures that add up over steps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/json.h"
#include "kernels/limits/roofline.h"

namespace weir::engine {

enum class OpKind {
  kEmbedding,
  kNorm,  // those that are not part of a product's input
  kQkv,   // products by role
  kRope,
  kStoreKv,
  kAttention,  // scores and values
  kAttentionOut,
  kRouter,
  kGateUp,
  kDown,
  kActivation,  // and other passes over activations
  kRecurrentProducts,
  kRecurrent,  // convolutions and scans
  kHead,
  kOtherProducts,  // of adapters, poolers
  kRest,           // between operations
};
inline constexpr std::size_t kOpKinds = static_cast<std::size_t>(OpKind::kRest) + 1;
const char* op_name(OpKind kind);  // "qkv", "gate_up", …

// What is multiplied, which says which of the machine's peaks counts.
enum class Operand { kQuantised, kF16, kBF16, kF32 };
inline constexpr std::size_t kOperands = 4;

struct OpCost {
  double seconds = 0;
  double bytes = 0;                                  // read from memory: weights, keys and values, states; not activations
  std::array<double, kOperands> multiply_adds = {};  // by Operand
  std::int64_t calls = 0;

  double all_multiply_adds() const;
  OpCost& operator+=(const OpCost& other);
};

struct StepBreakdown {
  std::array<OpCost, kOpKinds> ops = {};
  std::int64_t steps = 0;

  OpCost& operator[](OpKind kind) { return ops[static_cast<std::size_t>(kind)]; }
  const OpCost& operator[](OpKind kind) const { return ops[static_cast<std::size_t>(kind)]; }
  OpCost total() const;
  StepBreakdown& operator+=(const StepBreakdown& other);
  // A part of what another took: of a step that several requests shared. Its steps and calls are added whole.
  void add_share(const StepBreakdown& other, double share);
};

// The time of a step in three parts. Kinds that are bound by memory count what reading takes at the measured limit as `memory_s`, the
// others what their arithmetic takes at its peak as `compute_s`; what is left of the time taken is `rest_s`: hand-overs, caches,
// kernels below their roof, and kinds without bytes or multiply-adds.
struct Bound {
  double seconds = 0;
  double memory_s = 0, compute_s = 0, rest_s = 0;
  const char* by = "rest";  // "memory", "int8", "bf16", "fp32", "fp16" or "rest": the largest part

  double share_of_limit() const { return seconds > 0 ? (memory_s + compute_s) / seconds : 0; }
};

// `activations` as the backend was asked to take them.
Bound bound_of(const OpCost& cost, const kernels::Limits& limits, kernels::Activations activations);
Bound bound_of(const StepBreakdown& step, const kernels::Limits& limits, kernels::Activations activations);

// {"qkv": {"ms": …, "gb_per_s": …, "gmadd_per_s": …, "bytes": …, "multiply_adds": …, "calls": …}, …} of the kinds that ran, per step.
json::Object to_json(const StepBreakdown& step);
json::Object to_json(const Bound& bound);

}  // namespace weir::engine
