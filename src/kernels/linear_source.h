// SPDX-License-Identifier: Apache-2.0
// What the tasks of CpuBackend::linear read: rows of activations, brought once to the form in which they are multiplied (int8 blocks or
// bf16), by whichever threads come first.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/linear_bf16.h"
#include "kernels/linear_int8.h"

namespace weir::kernels {

enum class RowForm { kFloat, kInt8, kBf16 };  // in which rows are multiplied

// Rows [first, first + rows) in blocks of about the same size: with enough rows one or several for each thread, the same ones in every
// call, so that what belongs to a row stays in the caches of one core from layer to layer. A line that travels between cores costs as
// much as hundreds of multiply-adds.
struct RowBlocks {
  RowBlocks(std::int64_t begin, std::int64_t end, std::int64_t inputs, RowForm form, int threads);
  std::int64_t begin(std::int64_t block) const { return first + rows * block / count; }
  std::int64_t end(std::int64_t block) const { return begin(block + 1); }
  std::int64_t of(std::int64_t row) const { return ((row - first + 1) * count - 1) / rows; }
  std::int64_t first, rows, count;
};

// Rows of a source on their way to the form in which they are multiplied. Threads that want to multiply them prepare some until none is
// left.
struct alignas(64) RowBlock {
  QuantizedInput quantized;                       // kInt8
  RoundedRows rounded;                            // kBf16
  alignas(64) std::atomic<std::int64_t> next{0};  // rows
  std::atomic<std::int64_t> left{0};
  std::atomic<bool> ready{false};
};

// Rows of a matrix of activations, which several jobs may share.
struct LinearSource {
  ConstMatrix x;
  const InputStep* step;
  RowForm form;  // not kFloat
  RowBlocks cut;
  RowBlock* blocks;
};

// Row `row` of x after its step, written to `out` (which may be x's own row for a norm).
void apply_step(const KernelTable& table, const InputStep& step, ConstMatrix x, std::int64_t row, float* out);

// Room for block `index` of the source in memory that only the threads of that block write.
void allocate_block(LinearSource& source, std::int64_t index, Scratch& scratch);

// Returns when the block is ready: by this thread, unless others are at it. `scratch` is free afterwards.
void prepare_block(const KernelTable& table, const LinearSource& source, std::int64_t index, int threads, Scratch& scratch);

}  // namespace weir::kernels
