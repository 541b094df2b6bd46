// SPDX-License-Identifier: Apache-2.0
// Linear layers with quantised weights: activations as int8 blocks, and what a task of CpuBackend::linear does for its outputs
// and rows with them, or with float activations.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/scratch.h"

namespace weir::kernels {

// Outlier blocks of some rows of activations, those of the same 32 inputs together: a weight's block is then unpacked once for all.
struct ResidualList {
  ResidualBlock* blocks = nullptr;  // those of the b-th block of inputs: [begin[b], begin[b + 1])
  std::int32_t* begin = nullptr;
};

// Activations of some rows as int8, and once more what int8 lost of its outlier blocks. A block whose largest magnitude is far
// above those of its row's other blocks makes most of the row's rounding error; its residual is quantised too, as a block of
// its own, and added after the panel's own sum. Which blocks those are depends on the row alone.
struct QuantizedInput {
  QuantizedRows rows;
  QuantizedRows residuals;        // k = 32: entry e is one block; those of row r start at entry r · blocks
  std::int32_t* count = nullptr;  // [rows]: outlier blocks of the row
  std::int32_t* block = nullptr;  // as residuals: which block of the row it is, ascending
  ResidualList list;
};

QuantizedInput allocate_quantized(std::int64_t rows, std::int64_t k, Scratch& scratch);  // for groups of 32 only, until expect()
void expect(DType type, QuantizedInput& x);                                              // weights of this type will read it
void quantize_input_row(const KernelTable& table, const float* x, std::int64_t row, const QuantizedInput& out);
void list_residuals(const QuantizedInput& x, std::int64_t rows);  // when all are quantised

struct QuantizedTask {
  const LinearJob* job;
  const QuantizedInput* input;                          // of these rows; null: float activations
  std::int64_t out_begin, out_end, row_begin, row_end;  // of the job
};

void run_quantized(const KernelTable& table, const QuantizedTask& task, Scratch& scratch);

}  // namespace weir::kernels
