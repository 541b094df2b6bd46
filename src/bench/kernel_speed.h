// SPDX-License-Identifier: Apache-2.0
// Speed of single operations through the backend: linear layers with packed weights and attention over a filled KV cache. Each result is
// checked against the reference table before its speed counts.
#pragma once

#include <cstdint>
#include <memory>

#include "base/spread.h"
#include "kernels/cpu_backend.h"
#include "kernels/limits/roofline.h"

namespace weir::bench {

struct KernelOptions {
  kernels::CpuOptions cpu;
  std::uint64_t working_set = 128u << 20;  // weights are repeated until they have this size, so that few rows read them from memory
  double seconds = 0.5;                    // per case about, in `runs` runs
  int runs = 5;
};

struct KernelCase {
  Spread seconds;                   // of one call
  kernels::Work work;               // of one call
  std::uint64_t working_set = 0;    // bytes that the calls go through in turn
  double reference_speedup = 0;     // against the reference table with as many threads, on a piece of the work
  double error = 0, tolerance = 0;  // largest difference from the reference ÷ the size of its values
  bool right() const { return error <= tolerance; }
};

struct LinearShape {
  DType type = DType::kQ4_0;
  std::int64_t rows = 1, out = 2048, in = 8192;
  bool prompt = false;  // rows of a prompt, which some backends multiply in an arithmetic of their own
};

struct AttentionShape {
  DType kv_type = DType::kF32;
  std::int32_t rows = 1, depth = 4096;  // the last `rows` positions of `depth` ask
  std::int32_t heads = 32, kv_heads = 8, head_dim = 64;
};

// A sensible working set: four times the last-level cache, no more than an eighth of the free memory.
std::uint64_t default_working_set();

// The backends that are compared: the one that is measured, and the reference with the same threads and activations.
class KernelBench {
 public:
  static Result<KernelBench> create(const KernelOptions& options, const kernels::Limits& limits);

  // kInvalidArgument for sizes that are none, or that the type's blocks do not divide; kExhausted for want of memory.
  Result<KernelCase> linear(const LinearShape& shape);
  Result<KernelCase> attention(const AttentionShape& shape);

  const kernels::Backend& backend() const { return *backend_; }

 private:
  KernelBench(const KernelOptions& options, const kernels::Limits& limits) : options_(options), limits_(limits) {}

  KernelOptions options_;
  const kernels::Limits& limits_;
  std::unique_ptr<kernels::Backend> backend_, reference_;
};

}  // namespace weir::bench
