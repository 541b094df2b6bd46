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

std::size_t gate_up_jobs(ConstMatrix x, const FfnWeights& weights, const GateUp& buffers, std::int64_t begin, std::span<LinearJob> jobs) {
  if (weights.gate_up) {
    jobs[0] = job(x, weights.gate_up, buffers.fused.row_range(begin, x.rows));
    return 1;
  }
  jobs[0] = job(x, weights.gate, buffers.gate.row_range(begin, x.rows));
  jobs[1] = job(x, weights.up, buffers.up.row_range(begin, x.rows));
  return 2;
}

Matrix gate_up_product(const Pass& pass, GateUpLayout layout, const GateUp& buffers) {
  Matrix gate = buffers.gate, up = buffers.up;
  if (buffers.fused.data != nullptr && layout == GateUpLayout::kInterleaved) {
    const std::int64_t inner = gate.cols;
    gate = pass.arena.matrix(gate.rows, inner);
    up = pass.arena.matrix(gate.rows, inner);
    pass.backend.copy_columns(buffers.fused, {.count = inner, .width = 1, .x_first = 0, .x_step = 2, .out_step = 1}, gate);
    pass.backend.copy_columns(buffers.fused, {.count = inner, .width = 1, .x_first = 1, .x_step = 2, .out_step = 1}, up);
  }
  const FfnTraits& t = pass.traits.ffn;
  if (t.clamped) {
    pass.backend.clamped_swiglu(gate, up, t.clamp_alpha, t.clamp_limit, gate);
  } else {
    pass.backend.activate_mul(t.activation, gate, up, gate);
  }
  return gate;
}

void feed_forward(const Pass& pass, const Layer& layer, ConstMatrix x, Target target) {
  const FfnWeights& w = layer.weights.ffn;
  Matrix inner;
  if (layer.traits.ffn == FfnKind::kPlain) {
    inner = pass.arena.matrix(x.rows, w.down.weight->in());
    linear(pass, x, w.up, inner);
    pass.backend.activate(pass.traits.ffn.activation, inner, inner);
  } else {
    const GateUp buffers = gate_up_buffers(pass, w, x.rows);
    std::array<LinearJob, 2> jobs;
    pass.backend.linear({jobs.data(), gate_up_jobs(x, w, buffers, 0, jobs)});
    inner = gate_up_product(pass, pass.traits.ffn.gate_up, buffers);
  }
  linear(pass, inner, w.down, target.out, target.accumulate);
}

}  // namespace weir::model
