// SPDX-License-Identifier: Apache-2.0
// Operations on single rows: shape checks, then the table's function for each row.
#include <algorithm>

#include "kernels/cpu_backend_impl.h"

namespace weir::kernels {
namespace {

void check_same_shape(ConstMatrix a, ConstMatrix b) {
  WEIR_CHECK(a.rows == b.rows && a.cols == b.cols, "[{}, {}] and [{}, {}]", a.rows, a.cols, b.rows, b.cols);
}

constexpr std::int64_t kFunctionCost = 8;  // an exponential is worth about this many multiply-adds

}  // namespace

void check_norm(const NormParams& params, std::int64_t cols) {
  const std::int64_t group = params.group > 0 ? params.group : cols;
  WEIR_CHECK(group > 0 && cols % group == 0, "{} columns in groups of {}", cols, group);
}

void norm_row(const KernelTable& table, const NormParams& params, const float* x, std::int64_t cols, float* out) {
  const std::int64_t group = params.group > 0 ? params.group : cols;
  const auto function = params.kind == NormKind::kRms ? table.rms_norm : table.layer_norm;
  for (std::int64_t c = 0; c < cols; c += group) {
    const std::int64_t at = params.shared ? 0 : c;
    function(
        {x + c, params.weight ? params.weight + at : nullptr, params.bias ? params.bias + at : nullptr, out + c, group, params.epsilon});
  }
}

void CpuBackend::norm(ConstMatrix x, const NormParams& params, Matrix out) {
  check_same_shape(x, out);
  check_norm(params, x.cols);
  for_rows(x.rows, 2 * x.cols, [&](std::int64_t row) { norm_row(table_, params, x.row(row), x.cols, out.row(row)); });
}

void CpuBackend::rope(Matrix x, std::int32_t heads, std::int32_t offset, ConstMatrix table, bool pairs) {
  WEIR_CHECK(heads > 0 && x.cols % heads == 0 && table.rows == x.rows && table.cols % 2 == 0, "{} heads in {} columns", heads, x.cols);
  const std::int64_t head_dim = x.cols / heads, half = table.cols / 2;
  WEIR_CHECK(offset >= 0 && offset + table.cols <= head_dim, "rotary {}+{} of {}", offset, table.cols, head_dim);
  for_rows(x.rows, heads * table.cols, [&](std::int64_t row) {
    for (std::int64_t h = 0; h < heads; ++h)
      table_.rope(x.row(row) + h * head_dim + offset, table.row(row), table.row(row) + half, half, pairs);
  });
}

void CpuBackend::gather_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix out) {
  WEIR_CHECK(static_cast<std::int64_t>(rows.size()) == out.rows && x.cols == out.cols);
  for_rows(out.rows, out.cols, [&](std::int64_t row) {
    const std::int64_t from = rows[static_cast<std::size_t>(row)];
    WEIR_CHECK(from >= 0 && from < x.rows, "row {} of {}", from, x.rows);
    std::copy_n(x.row(from), out.cols, out.row(row));
  });
}

void CpuBackend::combine_rows(ConstMatrix x, std::span<const std::int32_t> rows, std::span<const float> weights, std::int32_t top_k,
                              bool accumulate, Matrix out) {
  WEIR_CHECK(top_k > 0 && rows.size() == weights.size() && static_cast<std::int64_t>(rows.size()) == out.rows * top_k &&
             x.cols == out.cols);
  for_rows(out.rows, out.cols * top_k, [&](std::int64_t row) {
    if (!accumulate) std::fill_n(out.row(row), out.cols, 0.0f);
    for (std::int64_t j = row * top_k; j < (row + 1) * top_k; ++j) {
      const std::int64_t from = rows[static_cast<std::size_t>(j)];
      WEIR_CHECK(from >= 0 && from < x.rows, "row {} of {}", from, x.rows);
      table_.add(x.row(from), weights[static_cast<std::size_t>(j)], out.cols, out.row(row));
    }
  });
}

void CpuBackend::copy_columns(ConstMatrix x, const ColumnPieces& p, Matrix out) {
  WEIR_CHECK(x.rows == out.rows && p.count >= 1 && p.width >= 0 && p.x_first >= 0 && p.out_first >= 0 && p.x_step >= 0 && p.out_step >= 0);
  WEIR_CHECK(p.x_first + (p.count - 1) * p.x_step + p.width <= x.cols && p.out_first + (p.count - 1) * p.out_step + p.width <= out.cols);
  for_rows(out.rows, p.count * p.width, [&](std::int64_t row) {
    for (std::int64_t i = 0; i < p.count; ++i)
      std::copy_n(x.row(row) + p.x_first + i * p.x_step, p.width, out.row(row) + p.out_first + i * p.out_step);
  });
}

void CpuBackend::activate(Activation kind, ConstMatrix x, Matrix out) {
  check_same_shape(x, out);
  for_rows(x.rows, kFunctionCost * x.cols, [&](std::int64_t row) { table_.activate(kind, x.row(row), nullptr, x.cols, out.row(row)); });
}

void CpuBackend::activate_mul(Activation kind, ConstMatrix gate, ConstMatrix up, Matrix out) {
  check_same_shape(gate, out);
  check_same_shape(up, out);
  for_rows(out.rows, kFunctionCost * out.cols,
           [&](std::int64_t row) { table_.activate(kind, gate.row(row), up.row(row), out.cols, out.row(row)); });
}

void CpuBackend::clamped_swiglu(ConstMatrix gate, ConstMatrix up, float alpha, float limit, Matrix out) {
  check_same_shape(gate, out);
  check_same_shape(up, out);
  for_rows(out.rows, kFunctionCost * out.cols,
           [&](std::int64_t row) { table_.clamped_swiglu(gate.row(row), up.row(row), alpha, limit, out.cols, out.row(row)); });
}

void CpuBackend::add(ConstMatrix x, float scale, Matrix out) {
  check_same_shape(x, out);
  for_rows(out.rows, out.cols, [&](std::int64_t row) { table_.add(x.row(row), scale, out.cols, out.row(row)); });
}

void CpuBackend::multiply(ConstMatrix x, Matrix out) {
  WEIR_CHECK(x.rows == out.rows && x.cols > 0 && out.cols % x.cols == 0, "[{}, {}] and [{}, {}]", x.rows, x.cols, out.rows, out.cols);
  const std::int64_t group = out.cols / x.cols;
  for_rows(out.rows, out.cols, [&](std::int64_t row) {
    if (group == 1) return table_.multiply(x.row(row), out.cols, out.row(row));
    for (std::int64_t c = 0; c < x.cols; ++c) table_.scale(x.row(row)[c], 0.0f, group, out.row(row) + c * group);
  });
}

void CpuBackend::scale(float factor, float softcap, Matrix x) {
  for_rows(x.rows, (softcap > 0 ? kFunctionCost : 1) * x.cols,
           [&](std::int64_t row) { table_.scale(factor, softcap, x.cols, x.row(row)); });
}

}  // namespace weir::kernels
