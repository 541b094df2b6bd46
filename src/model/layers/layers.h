// SPDX-License-Identifier: Apache-2.0
// The parts of a transformer's layer: mixers carry information along the sequence, feed-forward layers work on each row.
#pragma once

#include "model/pass.h"

namespace weir::model {

// x = [rows, hidden] → target [rows, hidden]; x is not the target's matrix when the target accumulates.
void mix_attention(const Pass& pass, const Layer& layer, Input x, Target target);
void mix_latent_attention(const Pass& pass, const Layer& layer, ConstMatrix x, Target target);
void mix_mamba2(const Pass& pass, const Layer& layer, ConstMatrix x, Target target);
void mix_gated_delta(const Pass& pass, const Layer& layer, ConstMatrix x, Target target);
void mix_short_conv(const Pass& pass, const Layer& layer, ConstMatrix x, Target target);

void feed_forward(const Pass& pass, const Layer& layer, Input x, Target target);                // kGated and kPlain
void feed_forward_experts(const Pass& pass, const Layer& layer, ConstMatrix x, Target target);  // kExperts

// A gated feed-forward layer between its projections: where they leave gate and up, and what they become.
struct GateUp {
  Matrix gate, up;
  Matrix fused;  // gate and up side by side, for a weight that yields both
};
GateUp gate_up_buffers(const Pass& pass, const FfnWeights& weights, std::int64_t rows);
// The jobs that fill rows [begin, begin + rows of x) of the buffers: one or two, written to `jobs`.
std::size_t gate_up_jobs(Input x, const FfnWeights& weights, const GateUp& buffers, std::int64_t begin, std::span<LinearJob> jobs);
// f(gate) · up, in place of gate; or left to the product that reads it.
Matrix gate_up_product(const Pass& pass, GateUpLayout layout, const GateUp& buffers);
Input gate_up_input(const Pass& pass, GateUpLayout layout, const GateUp& buffers);

}  // namespace weir::model
