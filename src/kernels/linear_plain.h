// SPDX-License-Identifier: Apache-2.0
// Linear layers with F32, F16 and BF16 weights: what a task of CpuBackend::linear does for its outputs and rows.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/scratch.h"

namespace weir::kernels {

struct PlainTask {
  const LinearJob* job;
  std::int64_t out_begin, out_end, row_begin, row_end;
};

inline bool is_plain(DType type) { return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16; }

void run_plain(const KernelTable& table, const PlainTask& task, Scratch& scratch);

// Brings what tiles computed for outputs from `out_begin` on to the job's output.
inline void write_dots(const KernelTable& table, const LinearJob& job, std::int64_t row_begin, std::int64_t row_end, const float* dots,
                       std::int64_t out_begin, int outs) {
  table.write_dots({dots, job.bias ? job.bias + out_begin : nullptr, job.accumulate, outs, row_end - row_begin,
                    job.out.row(row_begin) + out_begin, job.out.stride});
}

}  // namespace weir::kernels
