// SPDX-License-Identifier: Apache-2.0
// Linear layers with F32, F16 and BF16 weights: what a task of CpuBackend::linear does for its outputs and rows.
#pragma once

#include <cstdint>

#include "kernels/cpu_backend.h"
#include "kernels/kernel_table.h"
#include "kernels/linear_bf16.h"
#include "kernels/scratch.h"

namespace weir::kernels {

struct PlainTask {
  const LinearJob* job;
  const RoundedRows* rounded;                           // these rows in bf16; null: they are multiplied as floats
  std::int64_t out_begin, out_end, row_begin, row_end;  // out_begin: a multiple of kPanelOuts
};

void run_plain(const KernelTable& table, const PlainTask& task, Scratch& scratch);

// Backend::packed_bytes and pack for these weights.
std::int64_t plain_packed_bytes(const Weight& weight);
void pack_plain_panel(const KernelTable& table, const Weight& weight, std::int64_t panel, std::byte* out);

// Brings what tiles computed for outputs from `out_begin` on to the job's output.
inline void write_dots(const KernelTable& table, const LinearJob& job, std::int64_t row_begin, std::int64_t row_end, const float* dots,
                       std::int64_t out_begin, int outs, std::int64_t dots_stride = 0) {
  const std::int64_t bytes = (row_end - row_begin) * job.out.cols * static_cast<std::int64_t>(sizeof(float));
  const bool past_caches = table.most_cached_output > 0 && bytes > table.most_cached_output;
  table.write_dots({dots, job.bias ? job.bias + out_begin : nullptr, job.accumulate, outs, row_end - row_begin,
                    job.out.row(row_begin) + out_begin, job.out.stride, dots_stride, past_caches});
}

}  // namespace weir::kernels
