// SPDX-License-Identifier: Apache-2.0
// What this processor and its operating system can run, and which table that gives.
#pragma once

#include <string_view>

#include "base/result.h"
#include "kernels/kernel_table.h"

namespace weir::kernels {

struct CpuFeatures {
  bool avx2 = false;         // with FMA and F16C
  bool avx512_vnni = false;  // F, BW, DQ, VL and VNNI
};

const CpuFeatures& cpu_features();

// `isa` is "" (the best this machine runs, unless WEIR_ISA names one), "reference", "avx2" or "avx512".
// kInvalidArgument for another name, kUnsupported when the machine cannot run it.
Result<const KernelTable*> choose_kernel_table(std::string_view isa);

}  // namespace weir::kernels
