// SPDX-License-Identifier: Apache-2.0
// Linear layers in bf16: activations rounded to it, and quantised weights that are expanded to it for the rows of prompts, where a table
// multiplies bf16 much faster than int8 with its scales (tiles). Scales are part of the rounded weights then, so a sum never leaves the
// tiles. BF16 weights themselves are linear_plain.cc's.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/scratch.h"

namespace weir::kernels {

// Activations rounded to bf16, each row followed by zeros up to plain_padded(its inputs).
struct RoundedRows {
  std::uint16_t* data = nullptr;
  std::int64_t stride = 0;
};

RoundedRows allocate_rounded(std::int64_t rows, std::int64_t inputs, Scratch& scratch);
void round_input_row(const KernelTable& table, const float* x, std::int64_t inputs, std::int64_t row, const RoundedRows& out);

// Rows of a job with a quantised weight.
struct RoundedTask {
  const LinearJob* job;
  RoundedRows input;                                    // of these rows
  std::int64_t out_begin, out_end, row_begin, row_end;  // of the job; out_begin: a multiple of the stripe's outputs
};

// Outputs that a task should have at least where inputs are taken in ranges: each task brings all of its rows' activations near again.
std::int64_t fewest_outs(std::int64_t rows, std::int64_t inputs);

void run_rounded(const KernelTable& table, const RoundedTask& task, Scratch& scratch);

}  // namespace weir::kernels
