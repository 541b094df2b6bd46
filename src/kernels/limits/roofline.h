// SPDX-License-Identifier: Apache-2.0
// What the machine could do at best, measured in the same run as the figures that are judged by it, and how long a piece of work
// would take at that: the longer of reading its bytes and doing its arithmetic.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "kernels/cpu_backend.h"
#include "kernels/limits/multiply_add.h"
#include "tensor/dtype.h"

namespace weir::kernels {

struct Roof {
  double per_s = 0;  // the best that was measured
  std::string by;    // the instruction, or the pages
};

struct Limits {
  int threads = 1;
  std::uint64_t working_set = 0;  // bytes that were read again and again, all threads together
  Roof read;                      // bytes
  std::map<Arithmetic, Roof> arithmetic;
};

// What is read to measure: a quarter of the free memory at most, and no more than is as slow as anything larger.
std::uint64_t bounded_working_set(std::uint64_t wanted, std::uint64_t free_memory);

// Measures for `threads`, about a second in all, with a bounded working set. A second measurement (after the work) may be merged in: each
// roof is the best seen, so that shares are never flattered.
Result<Limits> measure_limits(int threads, std::uint64_t working_set);
void merge_limits(Limits& into, const Limits& other);
json::Object to_json(const Limits& limits);

struct Work {
  double bytes = 0;                  // read from memory
  std::map<Arithmetic, double> ops;  // multiply and add are two
};

struct BestTime {
  double seconds = 0;
  const char* bound = "memory";  // or "int8", "fp32", …: the arithmetic that takes longest
};
BestTime best_time(const Work& work, const Limits& limits);

// The fastest arithmetic in which a product with weights of this type could be computed here as asked.
Arithmetic arithmetic_for(DType weights, Activations activations, const Limits& limits);

}  // namespace weir::kernels
