// SPDX-License-Identifier: Apache-2.0
// Linear layers with F32, F16 and BF16 weights: what a task of CpuBackend::linear does for its outputs and rows.
#pragma once

#include <cstdint>

#include "kernels/cpu_backend.h"
#include "kernels/kernel_table.h"
#include "kernels/scratch.h"

namespace weir::kernels {

// Activations rounded to bf16, each row followed by zeros up to plain_padded(its inputs).
struct RoundedRows {
  std::uint16_t* data = nullptr;
  std::int64_t stride = 0;
};

RoundedRows allocate_rounded(std::int64_t rows, std::int64_t inputs, Scratch& scratch);
void round_input_row(const KernelTable& table, ConstMatrix x, std::int64_t row, const RoundedRows& out);

// Whether bf16 weights meet activations rounded to bf16: where int8 activations are asked for and the table has such a product.
bool rounds_inputs(const KernelTable& table, Activations activations, DType type);

struct PlainTask {
  const LinearJob* job;
  const RoundedRows* rounded;                           // of all of the job's rows; null: a task that wants its rows rounded does so
  std::int64_t out_begin, out_end, row_begin, row_end;  // out_begin: a multiple of kPanelOuts
};

void run_plain(const KernelTable& table, Activations activations, const PlainTask& task, Scratch& scratch);

// Backend::packed_bytes and pack for these weights.
std::int64_t plain_packed_bytes(const Weight& weight);
void pack_plain_panel(const KernelTable& table, const Weight& weight, std::int64_t panel, std::byte* out);

// Brings what tiles computed for outputs from `out_begin` on to the job's output.
inline void write_dots(const KernelTable& table, const LinearJob& job, std::int64_t row_begin, std::int64_t row_end, const float* dots,
                       std::int64_t out_begin, int outs, std::int64_t dots_stride = 0) {
  table.write_dots({dots, job.bias ? job.bias + out_begin : nullptr, job.accumulate, outs, row_end - row_begin,
                    job.out.row(row_begin) + out_begin, job.out.stride, dots_stride});
}

}  // namespace weir::kernels
