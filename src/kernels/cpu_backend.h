// SPDX-License-Identifier: Apache-2.0
// The CPU's backend: picks a kernel table for the machine once, splits work over one thread pool.
#pragma once

#include <memory>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/backend.h"

namespace weir::kernels {

// How activations enter a product with quantised weights: as they are, or as int8 blocks with a scale each.
enum class Activations { kInt8, kF32 };

struct CpuOptions {
  int threads = 0;  // 0 = usable_processors()
  Activations activations = Activations::kInt8;
  std::string isa = {};  // "" = WEIR_ISA, else the best the machine runs: "reference", "avx2", …
};

// kInvalidArgument when the ISA is unknown, kUnsupported when this machine cannot run it.
Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

}  // namespace weir::kernels
