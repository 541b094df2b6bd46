// SPDX-License-Identifier: Apache-2.0
#include "model/adapter_rows.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace weir::model {
namespace {

// Slices by phase, then by adapter, in the order in which each first occurs, those without one before all others.
std::span<std::int32_t> order_of(const Batch& batch, Arena& arena) {
  const std::size_t count = batch.slices.size();
  const std::span<const Adapter*> distinct = arena.array<const Adapter*>(count + 1);
  const std::span<std::int32_t> group = arena.array<std::int32_t>(count), order = arena.array<std::int32_t>(count);
  std::size_t groups = 1;
  for (std::size_t i = 0; i < batch.adapters.size(); ++i) {
    const auto known = distinct.first(groups);
    const auto at = std::ranges::find(known, batch.adapters[i]) - known.begin();
    if (static_cast<std::size_t>(at) == groups) distinct[groups++] = batch.adapters[i];
    group[i] = static_cast<std::int32_t>(at);
  }
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::int32_t i) {
    const auto at = static_cast<std::size_t>(i);
    return std::tuple(batch.slices[at].prompt, group[at], i);
  });
  return order;
}

// The entries of `values` (one for each of a slice's rows, or `each` for a slice) in another order of slices.
template <class T>
std::span<const T> picked(std::span<const T> values, std::span<const std::int32_t> from, std::size_t each, Arena& arena) {
  if (values.empty()) return values;
  const std::span<T> out = arena.array<T>(values.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    std::ranges::copy(values.subspan(static_cast<std::size_t>(from[i]) * each, each), out.begin() + static_cast<std::ptrdiff_t>(i * each));
  return out;
}

// The batch with its slices in this order.
void reorder(OrderedBatch& out, std::span<const std::int32_t> order, Arena& arena) {
  Batch& b = out.batch;
  const std::span<const kernels::SequenceSlice> given = b.slices;
  const std::span<std::int32_t> origin = arena.array<std::int32_t>(b.tokens.size()), place = arena.array<std::int32_t>(b.tokens.size());
  const std::span<std::int32_t> outputs = arena.array<std::int32_t>(b.output_rows.size());
  b.slices = picked(b.slices, order, 1, arena);
  b.adapters = picked(b.adapters, order, 1, arena);
  const std::span<kernels::SequenceSlice> slices = arena.array<kernels::SequenceSlice>(given.size());
  std::int32_t row = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    slices[i] = b.slices[i];
    for (std::int32_t r = slices[i].first_row; r < slices[i].first_row + slices[i].row_count; ++r) {
      place[static_cast<std::size_t>(r)] = row;
      origin[static_cast<std::size_t>(row++)] = r;
    }
    slices[i].first_row = row - slices[i].row_count;
  }
  b.slices = slices;
  b.tables = picked(b.tables, order, b.tables.size() / given.size(), arena);
  b.tokens = picked(b.tokens, std::span<const std::int32_t>(origin), 1, arena);
  b.token_types = picked(b.token_types, std::span<const std::int32_t>(origin), 1, arena);
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = place[static_cast<std::size_t>(b.output_rows[i])];
  b.output_rows = outputs;
  out.origin = origin;
}

// Adds rows to the last run when they continue it.
void add_rows(std::span<AdaptedRows> runs, std::size_t& count, const Adapter* adapter, std::int64_t begin, std::int64_t rows) {
  if (!adapter) return;
  if (count > 0 && runs[count - 1].adapter == adapter && runs[count - 1].begin + runs[count - 1].count == begin) {
    runs[count - 1].count += rows;
  } else {
    runs[count++] = {adapter, begin, rows};
  }
}

std::span<const AdaptedRows> output_runs(const Batch& batch, std::span<const AdaptedRows> rows, Arena& arena) {
  const std::span<AdaptedRows> runs = arena.array<AdaptedRows>(batch.output_rows.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < batch.output_rows.size(); ++i) {
    const std::int64_t row = batch.output_rows[i];
    const auto run = std::ranges::find_if(rows, [&](const AdaptedRows& r) { return row >= r.begin && row < r.begin + r.count; });
    if (run != rows.end()) add_rows(runs, count, run->adapter, static_cast<std::int64_t>(i), 1);
  }
  return runs.first(count);
}

}  // namespace

OrderedBatch order_rows(const Batch& batch, Arena& arena) {
  OrderedBatch out{batch};
  for (const kernels::SequenceSlice& slice : batch.slices) out.prompt_rows += slice.prompt ? slice.row_count : 0;
  const bool adapted = std::ranges::any_of(batch.adapters, [](const Adapter* a) { return a != nullptr; });
  if (!adapted && std::ranges::is_sorted(batch.slices, {}, &kernels::SequenceSlice::prompt)) return out;
  const std::span<const std::int32_t> order = order_of(batch, arena);
  if (!std::ranges::is_sorted(order)) reorder(out, order, arena);
  if (!adapted) return out;
  const std::span<AdaptedRows> runs = arena.array<AdaptedRows>(batch.slices.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < out.batch.slices.size(); ++i)
    add_rows(runs, count, out.batch.adapters[i], out.batch.slices[i].first_row, out.batch.slices[i].row_count);
  out.rows = runs.first(count);
  out.outputs = output_runs(out.batch, out.rows, arena);
  return out;
}

}  // namespace weir::model
