// SPDX-License-Identifier: Apache-2.0
// What this processor and its operating system can run, and which table that gives.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "kernels/kernel_table.h"

namespace weir::kernels {

struct CpuFeatures {
  bool avx2 = false;            // with FMA and F16C
  bool avx_vnni = false;        // avx2, and int8 dot products on 256 bits
  bool avx512_vnni = false;     // F, BW, DQ, VL and VNNI
  bool avx512_bf16 = false;     // avx512_vnni, and bf16 dot products
  bool avx512_fp16 = false;     // avx512_vnni, and arithmetic on halves
  bool avx512_vbmi = false;     // avx512_vnni, and permutations of bytes
  bool amx = false;             // avx512_bf16, avx512_vbmi, tiles of int8 and bf16, and the kernel's permission to use them
  bool fast_bf16_dots = false;  // bf16 dot products do twice the multiply-adds of fp32 (AMD); else half of them (Intel)
  // What a single row asks for lies so far ahead of what it reads; 0: the processor's own prefetching is faster (AMD). 4 to 12 KiB are
  // alike on Intel: docs/performance.md.
  std::int64_t row_ahead_bytes = 0;
};

const CpuFeatures& cpu_features();

// `isa` is "" (the best this machine runs, unless WEIR_ISA names one), or the name of a table: reference, avx2, avx2_vnni,
// avx512, avx512_bf16, amx. bf16 dot products are preferred only where they are fast, so the arithmetic with bf16 weights differs
// between processors, but never on one.
// kInvalidArgument for another name, kUnsupported when the machine cannot run it.
Result<const KernelTable*> choose_kernel_table(std::string_view isa);

}  // namespace weir::kernels
