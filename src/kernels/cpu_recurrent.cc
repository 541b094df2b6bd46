// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: rows of a sequence one after the other, channels or heads side by side on the threads. The state after
// a slice is what it would be had its rows come one by one, so chunk borders change nothing.
#include <algorithm>
#include <cmath>

#include "kernels/cpu_backend_impl.h"

namespace weir::kernels {
namespace {

constexpr std::int64_t kChannelBlock = 128;

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

// out = factor · x / sqrt(sum x² + epsilon)
void l2_normalise(const float* x, std::int64_t n, float epsilon, float factor, float* out) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  const auto inverse = static_cast<float>(1.0 / std::sqrt(sum + epsilon));
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * inverse * factor;
}

void check_slices(std::span<const SequenceSlice> slices, std::int64_t rows) {
  for (const SequenceSlice& s : slices)
    WEIR_CHECK(s.state.valid() && s.first_row >= 0 && s.row_count >= 0 && s.first_row + s.row_count <= rows, "slice {}+{} of {}",
               s.first_row, s.row_count, rows);
}

std::int64_t most_rows(std::span<const SequenceSlice> slices) {
  std::int64_t rows = 0;
  for (const SequenceSlice& s : slices) rows = std::max<std::int64_t>(rows, s.row_count);
  return rows;
}

}  // namespace

void CpuBackend::causal_conv(ConstMatrix x, const ConvParams& params, std::span<const SequenceSlice> slices, const StateLayer& state,
                             Matrix out) {
  WEIR_CHECK(x.rows == out.rows && x.cols == out.cols && params.taps >= 1 && params.weight);
  WEIR_CHECK(state.floats_per_slot >= (params.taps - 1) * x.cols);
  check_slices(slices, x.rows);
  const std::int64_t blocks = (x.cols + kChannelBlock - 1) / kChannelBlock;
  const std::int64_t cost = most_rows(slices) * kChannelBlock * (params.taps + (params.silu ? 8 : 0));
  for_tasks(static_cast<std::int64_t>(slices.size()) * blocks, cost, [&](std::int64_t task, Scratch&) {
    const SequenceSlice& slice = slices[static_cast<std::size_t>(task / blocks)];
    const std::int64_t begin = task % blocks * kChannelBlock, end = std::min(begin + kChannelBlock, x.cols);
    for (std::int64_t row = slice.first_row; row < slice.first_row + slice.row_count; ++row)
      table_.conv_row({x.row(row), state.slot(slice.state), x.cols, begin, end, out.row(row)}, params);
  });
}

void CpuBackend::ssd_scan(ConstMatrix x, ConstMatrix b, ConstMatrix c, ConstMatrix dt, const SsdParams& p,
                          std::span<const SequenceSlice> slices, const StateLayer& state, std::int64_t state_offset, Matrix out) {
  WEIR_CHECK(p.heads > 0 && p.groups > 0 && p.heads % p.groups == 0 && p.a && p.d && p.dt_bias);
  WEIR_CHECK(x.cols == std::int64_t{p.heads} * p.head_dim && b.cols == std::int64_t{p.groups} * p.state && c.cols == b.cols);
  WEIR_CHECK(dt.cols == p.heads && out.cols == x.cols && out.rows == x.rows && b.rows == x.rows && c.rows == x.rows && dt.rows == x.rows);
  const std::int64_t per_head = std::int64_t{p.head_dim} * p.state;
  WEIR_CHECK(state_offset >= 0 && state_offset + p.heads * per_head <= state.floats_per_slot);
  check_slices(slices, x.rows);
  for_tasks(static_cast<std::int64_t>(slices.size()) * p.heads, most_rows(slices) * per_head * 2, [&](std::int64_t task, Scratch&) {
    const SequenceSlice& slice = slices[static_cast<std::size_t>(task / p.heads)];
    const std::int64_t head = task % p.heads, group = head / (p.heads / p.groups);
    for (std::int64_t row = slice.first_row; row < slice.first_row + slice.row_count; ++row) {
      const float step = std::clamp(softplus(dt.row(row)[head] + p.dt_bias[head]), p.dt_min, p.dt_max);
      table_.ssd_step({x.row(row) + head * p.head_dim, b.row(row) + group * p.state, c.row(row) + group * p.state,
                       std::exp(step * p.a[head]), step, p.d[head], p.head_dim, p.state,
                       state.slot(slice.state) + state_offset + head * per_head, out.row(row) + head * p.head_dim});
    }
  });
}

void CpuBackend::delta_scan(ConstMatrix q, ConstMatrix k, ConstMatrix v, ConstMatrix alpha, ConstMatrix beta, const DeltaParams& p,
                            std::span<const SequenceSlice> slices, const StateLayer& state, std::int64_t state_offset, Matrix out) {
  WEIR_CHECK(p.key_heads > 0 && p.value_heads % p.key_heads == 0 && p.value_heads > 0 && p.a && p.dt_bias);
  WEIR_CHECK(q.cols == std::int64_t{p.key_heads} * p.key_dim && k.cols == q.cols && v.cols == std::int64_t{p.value_heads} * p.value_dim);
  WEIR_CHECK(alpha.cols == p.value_heads && beta.cols == p.value_heads && out.cols == v.cols && out.rows == q.rows);
  WEIR_CHECK(k.rows == q.rows && v.rows == q.rows && alpha.rows == q.rows && beta.rows == q.rows);
  const std::int64_t per_head = std::int64_t{p.key_dim} * p.value_dim;
  WEIR_CHECK(state_offset >= 0 && state_offset + p.value_heads * per_head <= state.floats_per_slot);
  check_slices(slices, q.rows);
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(p.key_dim));
  for_tasks(
      static_cast<std::int64_t>(slices.size()) * p.value_heads, most_rows(slices) * per_head * 3, [&](std::int64_t task, Scratch& scratch) {
        const SequenceSlice& slice = slices[static_cast<std::size_t>(task / p.value_heads)];
        const std::int64_t head = task % p.value_heads, key_head = p.tiled ? head % p.key_heads : head / (p.value_heads / p.key_heads);
        float* query = scratch.take<float>(p.key_dim);
        float* key = scratch.take<float>(p.key_dim);
        float* correction = scratch.take<float>(p.value_dim);
        for (std::int64_t row = slice.first_row; row < slice.first_row + slice.row_count; ++row) {
          l2_normalise(q.row(row) + key_head * p.key_dim, p.key_dim, p.l2_epsilon, query_scale, query);
          l2_normalise(k.row(row) + key_head * p.key_dim, p.key_dim, p.l2_epsilon, 1.0f, key);
          const float gate = p.a[head] * softplus(alpha.row(row)[head] + p.dt_bias[head]);
          const float rate = 1.0f / (1.0f + std::exp(-beta.row(row)[head]));
          table_.delta_step({query, key, v.row(row) + head * p.value_dim, std::exp(gate), rate, p.key_dim, p.value_dim,
                             state.slot(slice.state) + state_offset + head * per_head, correction, out.row(row) + head * p.value_dim});
        }
      });
}

}  // namespace weir::kernels
