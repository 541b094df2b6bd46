// SPDX-License-Identifier: Apache-2.0
// The CPU's backend as a class: shape checks and the cutting of work over threads. Its members are spread over cpu_*.cc by
// group of operations; the arithmetic is in the kernel table.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu_backend.h"
#include "kernels/kernel_table.h"
#include "kernels/scratch.h"

namespace weir::kernels {

struct LinearPart;
struct LinearSource;
enum class RowForm;

void check_norm(const NormParams& params, std::int64_t cols);
void norm_row(const KernelTable& table, const NormParams& params, const float* x, std::int64_t cols, float* out);

class CpuBackend final : public Backend {
 public:
  CpuBackend(const KernelTable& table, Activations activations, int threads);

  std::string description() const override;
  DType kv_type() const override;
  bool phases_differ() const override;
  void for_each(std::int64_t count, FunctionRef<void(std::int64_t)> body) override { for_rows(count, kAlwaysShared, body); }
  std::int64_t packed_bytes(const Weight& weight) const override;
  void pack(const Weight& weight, std::span<std::byte> out) override;
  void pack_alone(const Weight& weight, std::span<std::byte> out) const override;
  std::string packed_layout() const override;
  void embed(const Weight& table, std::span<const TokenId> ids, float scale, Matrix out) override;
  void linear(std::span<const LinearJob> jobs) override;
  void norm(ConstMatrix x, const NormParams& params, Matrix out) override;
  void rope(Matrix x, std::int32_t heads, std::int32_t offset, ConstMatrix table, bool pairs) override;
  void store_kv(ConstMatrix keys, ConstMatrix values, std::span<const SequenceSlice> slices, const KvLayer& layer) override;
  void attention(ConstMatrix q, std::span<const SequenceSlice> slices, const KvLayer& layer, const AttentionParams& params,
                 Matrix out) override;
  void route(ConstMatrix logits, const RouterParams& params, std::span<std::int32_t> ids, std::span<float> weights) override;
  void gather_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix out) override;
  void combine_rows(ConstMatrix x, std::span<const std::int32_t> rows, std::span<const float> weights, std::int32_t top_k, bool accumulate,
                    Matrix out) override;
  void copy_columns(ConstMatrix x, const ColumnPieces& pieces, Matrix out) override;
  void activate(Activation kind, ConstMatrix x, Matrix out) override;
  void activate_mul(Activation kind, ConstMatrix gate, ConstMatrix up, Matrix out) override;
  void clamped_swiglu(ConstMatrix gate, ConstMatrix up, float alpha, float limit, Matrix out) override;
  void add(ConstMatrix x, float scale, Matrix out) override;
  void multiply(ConstMatrix x, Matrix out) override;
  void scale(float factor, float softcap, Matrix x) override;
  void causal_conv(ConstMatrix x, const ConvParams& params, std::span<const SequenceSlice> slices, const StateLayer& state,
                   Matrix out) override;
  void ssd_scan(ConstMatrix x, ConstMatrix b, ConstMatrix c, ConstMatrix dt, const SsdParams& params, std::span<const SequenceSlice> slices,
                const StateLayer& state, std::int64_t state_offset, Matrix out) override;
  void delta_scan(ConstMatrix q, ConstMatrix k, ConstMatrix v, ConstMatrix alpha, ConstMatrix beta, const DeltaParams& params,
                  std::span<const SequenceSlice> slices, const StateLayer& state, std::int64_t state_offset, Matrix out) override;

 private:
  std::span<const LinearJob> prepare_float_inputs(std::span<const LinearJob> jobs);
  RowForm form_of(const LinearJob& job, bool prompt) const;
  const LinearSource* source_of(const LinearPart& part, LinearSource* sources, std::int64_t& count);
  std::span<const LinearPart> parts_of(std::span<const LinearJob> jobs);
  std::int64_t pack_outs(const Weight& weight) const;
  template <class ForEach>
  void pack_pieces(const Weight& weight, std::span<std::byte> out, ForEach for_each) const;
  // Runs body(row) for each row, on one thread when the work (`cost` elements a row) is too small to share. Thread t of T begins with
  // rows [rows · t / T, rows · (t + 1) / T), as in the other operations: what a row consists of is in the caches of its core.
  void for_rows(std::int64_t rows, std::int64_t cost, FunctionRef<void(std::int64_t)> body);
  // Runs body(task, scratch of the thread) for each task. A thread takes the tasks of its own share in order, which keeps
  // what it streams in one piece, then helps others with theirs. `cost` as above.
  void for_tasks(std::int64_t tasks, std::int64_t cost, FunctionRef<void(std::int64_t, Scratch&)> body);
  // The same with shares_ as the caller has set them: body(begin, end, scratch) for up to `grain` of a share at a time.
  void run_shares(std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t, Scratch&)> body);
  void share_evenly(std::int64_t tasks);
  bool is_worth_sharing(std::int64_t tasks, std::int64_t work) const;

  static constexpr std::int64_t kAlwaysShared = 1 << 20;  // a cost

  struct alignas(64) Share {  // of the tasks of a call
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  const KernelTable& table_;
  Activations activations_;
  ThreadPool pool_;
  Scratch shared_;                // the caller's: task lists of a call
  std::vector<Scratch> inputs_;   // activations, as they are multiplied, of the rows that a thread begins with
  std::vector<Scratch> scratch_;  // one per thread
  std::vector<Share> shares_;     // likewise
};

}  // namespace weir::kernels
