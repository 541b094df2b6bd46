// SPDX-License-Identifier: Apache-2.0
// Construction, and the two ways in which operations share work between threads.
#include <algorithm>
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
      inputs_(static_cast<std::size_t>(threads)),
      scratch_(static_cast<std::size_t>(threads)),
      shares_(static_cast<std::size_t>(threads)) {}

std::string CpuBackend::description() const {
  return fmt::format("{}, {} activations{}, {} thread{}", table_.name, activations_ == Activations::kInt8 ? "int8" : "f32",
                     phases_differ() ? " (prompts: bf16)" : "", pool_.size(), pool_.size() == 1 ? "" : "s");
}

// With activations as they are, nothing else is rounded either.
DType CpuBackend::kv_type() const {
  if (activations_ == Activations::kF32) return DType::kF32;
  return table_.attention.bf16.step ? DType::kBF16 : DType::kF16;
}

bool CpuBackend::is_worth_sharing(std::int64_t tasks, std::int64_t work) const {
  return pool_.size() > 1 && tasks > 1 && work >= kWorthSharing;
}

void CpuBackend::share_evenly(std::int64_t tasks) {
  for (std::int64_t t = 0; t < pool_.size(); ++t) {
    Share& share = shares_[static_cast<std::size_t>(t)];
    share.next.store(tasks * t / pool_.size(), std::memory_order_relaxed);
    share.end = tasks * (t + 1) / pool_.size();
  }
}

void CpuBackend::run_shares(std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t, Scratch&)> body) {
  pool_.run([&](int thread) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(thread)];
    const std::size_t threads = shares_.size();
    for (std::size_t i = 0; i < threads; ++i) {
      Share& share = shares_[(static_cast<std::size_t>(thread) + i) % threads];
      // The last task of a share is its owner's: what moving its data to another core costs is more than waiting for it.
      const std::int64_t left_alone = i > 0 ? grain : 0;
      while (share.next.load(std::memory_order_relaxed) + left_alone < share.end) {
        const std::int64_t at = share.next.fetch_add(grain, std::memory_order_relaxed);
        if (at < share.end) body(at, std::min(at + grain, share.end), scratch);
      }
    }
  });
}

void CpuBackend::for_rows(std::int64_t rows, std::int64_t cost, FunctionRef<void(std::int64_t)> body) {
  if (!is_worth_sharing(rows, rows * cost)) {
    for (std::int64_t row = 0; row < rows; ++row) body(row);
    return;
  }
  share_evenly(rows);
  run_shares(std::max<std::int64_t>(1, kWorthSharing / 2 / std::max<std::int64_t>(cost, 1)),
             [&](std::int64_t begin, std::int64_t end, Scratch&) {
               for (std::int64_t row = begin; row < end; ++row) body(row);
             });
}

void CpuBackend::for_tasks(std::int64_t tasks, std::int64_t cost, FunctionRef<void(std::int64_t, Scratch&)> body) {
  const auto run = [&](std::int64_t begin, std::int64_t end, Scratch& scratch) {
    for (std::int64_t task = begin; task < end; ++task) {
      scratch.reset();
      body(task, scratch);
    }
  };
  if (!is_worth_sharing(tasks, tasks * cost)) return run(0, tasks, scratch_[0]);
  share_evenly(tasks);
  run_shares(1, run);
}

}  // namespace weir::kernels
