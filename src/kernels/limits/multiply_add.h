// SPDX-License-Identifier: Apache-2.0
// Loops that do nothing but multiply and add, one per instruction that a kernel could be built on: their speed is the roof of every
// matrix product. Enough independent sums hide the instruction's latency.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/spread.h"

namespace weir::kernels {

enum class Arithmetic { kF32, kF16, kBF16, kInt8 };  // what is multiplied
const char* arithmetic_name(Arithmetic arithmetic);  // "fp32", "fp16", "bf16", "int8"

struct MultiplyAddLoop {
  const char* name;  // "int8 vpdpbusd, 512 bit"
  Arithmetic arithmetic;
  double ops_per_step;                       // multiply and add are two
  bool usable;                               // the processor and the system allow it
  std::uint64_t (*run)(std::int64_t steps);  // the result keeps the sums from being optimised away
};

// All loops that this build knows; the first is plain C++ and always usable.
std::span<const MultiplyAddLoop> multiply_add_loops();

struct Peak {
  const char* name = "";
  Arithmetic arithmetic = Arithmetic::kF32;
  int threads = 1;
  Spread ops_per_s;
};

// Speed of a usable loop on `threads` threads at once; `seconds` are spent about, in `runs` runs. `processors`: run_together.
Peak measure_multiply_add(const MultiplyAddLoop& loop, int threads, double seconds = 0.1, int runs = 5,
                          std::span<const int> processors = {});

}  // namespace weir::kernels
