// SPDX-License-Identifier: Apache-2.0
// The feed-forward layer on every row: down(f(gate(x)) · up(x)), or down(f(up(x))) without a gate (GPT-2, Phi, Nemotron).
#include <array>

#include "model/layers/layers.h"

namespace weir::model {

GateUp gate_up_buffers(const Pass& pass, const FfnWeights& weights, std::int64_t rows) {
  const std::int64_t inner = weights.down.weight->in();
  GateUp b;
  if (weights.gate_up) {
    b.fused = pass.arena.matrix(rows, 2 * inner);
    b.gate = b.fused.col_range(0, inner);
    b.up = b.fused.col_range(inner, inner);
  } else {
    b.gate = pass.arena.matrix(rows, inner);
    b.up = pass.arena.matrix(rows, inner);
  }
  return b;
}

std::size_t gate_up_jobs(Input x, const FfnWeights& weights, const GateUp& buffers, std::int64_t begin, std::span<LinearJob> jobs) {
  if (weights.gate_up) {
    jobs[0] = job(x, weights.gate_up, buffers.fused.row_range(begin, x.x.rows));
    return 1;
  }
  jobs[0] = job(x, weights.gate, buffers.gate.row_range(begin, x.x.rows));
  jobs[1] = job(x, weights.up, buffers.up.row_range(begin, x.x.rows));
  return 2;
}

namespace {

// f(x), times `factor` if there is one, as a step of what reads it.
Input activated(const Pass& pass, Activation activation, ConstMatrix x, ConstMatrix factor) {
  kernels::InputStep& step = pass.arena.array<kernels::InputStep>(1)[0];
  step.kind = kernels::InputStep::Kind::kActivation;
  step.activation = activation;
  step.factor = factor;
  return {x, &step};
}

// Gate and up as matrices of their own.
GateUp separate(const Pass& pass, GateUpLayout layout, const GateUp& buffers) {
  if (buffers.fused.data == nullptr || layout != GateUpLayout::kInterleaved) return buffers;
  const std::int64_t rows = buffers.gate.rows, inner = buffers.gate.cols;
  const GateUp out{pass.arena.matrix(rows, inner), pass.arena.matrix(rows, inner), {}};
  pass.backend.copy_columns(buffers.fused, {.count = inner, .width = 1, .x_first = 0, .x_step = 2, .out_step = 1}, out.gate);
  pass.backend.copy_columns(buffers.fused, {.count = inner, .width = 1, .x_first = 1, .x_step = 2, .out_step = 1}, out.up);
  return out;
}

}  // namespace

Matrix gate_up_product(const Pass& pass, GateUpLayout layout, const GateUp& buffers) {
  const GateUp b = separate(pass, layout, buffers);
  const FfnTraits& t = pass.traits.ffn;
  if (t.clamped) {
    pass.backend.clamped_swiglu(b.gate, b.up, t.clamp_alpha, t.clamp_limit, b.gate);
  } else {
    pass.backend.activate_mul(t.activation, b.gate, b.up, b.gate);
  }
  return b.gate;
}

Input gate_up_input(const Pass& pass, GateUpLayout layout, const GateUp& buffers) {
  if (pass.traits.ffn.clamped) return gate_up_product(pass, layout, buffers);
  const GateUp b = separate(pass, layout, buffers);
  return activated(pass, pass.traits.ffn.activation, b.gate, b.up);
}

void feed_forward(const Pass& pass, const Layer& layer, Input x, Target target) {
  const FfnWeights& w = layer.weights.ffn;
  const std::int64_t rows = x.x.rows;
  if (layer.traits.ffn == FfnKind::kPlain) {
    const Matrix inner = pass.arena.matrix(rows, w.down.weight->in());
    linear(pass, x, w.up, inner);
    return linear(pass, activated(pass, pass.traits.ffn.activation, inner, {}), w.down, target.out, target.accumulate);
  }
  const GateUp buffers = gate_up_buffers(pass, w, rows);
  std::array<LinearJob, 2> jobs;
  linear(pass, {jobs.data(), gate_up_jobs(x, w, buffers, 0, jobs)});
  linear(pass, gate_up_input(pass, pass.traits.ffn.gate_up, buffers), w.down, target.out, target.accumulate);
}

}  // namespace weir::model
