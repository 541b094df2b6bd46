// SPDX-License-Identifier: Apache-2.0
// Construction, and the two ways in which operations share work between threads.
#include <atomic>

#include "kernels/cpu_backend_impl.h"
#include "kernels/cpu_features.h"

namespace weir::kernels {
namespace {

constexpr std::int64_t kWorthSharing = 16 << 10;  // elements below which waking another thread costs more than it saves

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options) {
  WEIR_ASSIGN(const KernelTable* table, choose_kernel_table(options.isa));
  if (options.threads < 0 || options.threads > 4096) {
    return fail(ErrorCode::kInvalidArgument, "{} threads: use 1 to 4096, or 0 for as many as the process may use", options.threads);
  }
  const int threads = options.threads == 0 ? usable_processors() : options.threads;
  return std::make_unique<CpuBackend>(*table, options.activations, threads);
}

CpuBackend::CpuBackend(const KernelTable& table, Activations activations, int threads)
    : table_(table),
      activations_(activations),
      pool_(threads),
      scratch_(static_cast<std::size_t>(threads)),
      shares_(static_cast<std::size_t>(threads)) {}

std::string CpuBackend::description() const {
  return fmt::format("{}, {} activations, {} thread{}", table_.name, activations_ == Activations::kInt8 ? "int8" : "f32", pool_.size(),
                     pool_.size() == 1 ? "" : "s");
}

// With activations as they are, nothing else is rounded either.
DType CpuBackend::kv_type() const {
  if (activations_ == Activations::kF32) return DType::kF32;
  return table_.attention.bf16.step ? DType::kBF16 : DType::kF16;
}

void CpuBackend::for_rows(std::int64_t rows, std::int64_t cost, FunctionRef<void(std::int64_t)> body) {
  auto range = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row);
  };
  if (rows * cost < kWorthSharing) return range(0, rows);
  const std::int64_t grain = kWorthSharing / 2 / (cost > 0 ? cost : 1);
  pool_.parallel_for(rows, grain > 1 ? grain : 1, range);
}

void CpuBackend::for_tasks(std::int64_t tasks, std::int64_t cost, FunctionRef<void(std::int64_t, Scratch&)> body) {
  if (tasks == 0) return;
  const auto run = [&](std::int64_t task, Scratch& scratch) {
    scratch.reset();
    body(task, scratch);
  };
  const auto threads = static_cast<std::size_t>(pool_.size());
  if (threads == 1 || tasks == 1 || tasks * cost < kWorthSharing) {
    for (std::int64_t task = 0; task < tasks; ++task) run(task, scratch_[0]);
    return;
  }
  for (std::size_t t = 0; t < threads; ++t) {
    shares_[t].next.store(tasks * static_cast<std::int64_t>(t) / pool_.size(), std::memory_order_relaxed);
    shares_[t].end = tasks * static_cast<std::int64_t>(t + 1) / pool_.size();
  }
  pool_.run([&](int thread) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(thread)];
    for (std::size_t i = 0; i < threads; ++i) {
      Share& share = shares_[(static_cast<std::size_t>(thread) + i) % threads];
      for (std::int64_t task; (task = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) run(task, scratch);
    }
  });
}

}  // namespace weir::kernels
