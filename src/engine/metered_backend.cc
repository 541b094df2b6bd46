// SPDX-License-Identifier: Apache-2.0
#include "engine/metered_backend.h"

#include <algorithm>
#include <utility>

#include "engine/weight_roles.h"
#include "model/model.h"

namespace weir::engine {
namespace {

using namespace kernels;

Operand operand_of(DType type) {
  if (dtype_info(type).quantized) return Operand::kQuantised;
  return type == DType::kF16 ? Operand::kF16 : type == DType::kBF16 ? Operand::kBF16 : Operand::kF32;
}

void count(OpCost& cost, Operand operand, std::int64_t multiply_adds) {
  cost.multiply_adds[static_cast<std::size_t>(operand)] += static_cast<double>(multiply_adds);
}

// Positions that the rows of a slice see, added up: row i sees first + i + 1, or `window` at most.
std::int64_t seen_by_rows(const SequenceSlice& slice, const AttentionParams& params) {
  const std::int64_t rows = slice.row_count, first = slice.first_position;
  if (!params.causal) return rows * rows;
  const std::int64_t window = params.window > 0 ? params.window : INT64_MAX;
  const std::int64_t growing = std::clamp<std::int64_t>(window - first, 0, rows);  // rows that see all before them
  return growing * (first + 1) + growing * (growing - 1) / 2 + (rows - growing) * (params.window > 0 ? window : 0);
}

// Positions that any row of it sees.
std::int64_t positions_read(const SequenceSlice& slice, const AttentionParams& params) {
  const std::int64_t end = std::int64_t{slice.first_position} + slice.row_count;
  if (!params.causal) return slice.row_count;
  return params.window > 0 ? std::min<std::int64_t>(end, std::int64_t{params.window} - 1 + slice.row_count) : end;
}

void count_state(OpCost& cost, std::span<const SequenceSlice> slices, std::int64_t floats) {
  cost.bytes += static_cast<double>(static_cast<std::int64_t>(slices.size()) * floats * std::int64_t{sizeof(float)});
}

}  // namespace

// From its making to its end, when a step is measured.
class MeteredBackend::Timed {
 public:
  Timed(MeteredBackend& meter, OpKind kind) : cost_(meter.measuring_ ? &meter.step_[kind] : nullptr) {
    if (cost_) begin_ = std::chrono::steady_clock::now();
  }
  ~Timed() {
    if (!cost_) return;
    cost_->seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    ++cost_->calls;
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  explicit operator bool() const { return cost_ != nullptr; }
  OpCost& cost() const { return *cost_; }

 private:
  OpCost* cost_;
  Time begin_;
};

MeteredBackend::MeteredBackend(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}
MeteredBackend::~MeteredBackend() = default;

void MeteredBackend::learn_roles(const model::Model& model) { roles_ = weight_roles(model.weights()); }

void MeteredBackend::begin_step() {
  step_ = {};
  measuring_ = true;
  begin_ = std::chrono::steady_clock::now();
}

const StepBreakdown& MeteredBackend::end_step() {
  if (!std::exchange(measuring_, false)) return step_;
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  step_[OpKind::kRest].seconds = std::max(0.0, whole - step_.total().seconds);
  step_.steps = 1;
  return step_;
}

// Jobs of a call are of one role, but for the gates beside them.
OpKind MeteredBackend::kind_of(std::span<const LinearJob> jobs) const {
  if (!measuring_ || jobs.empty()) return OpKind::kOtherProducts;
  const auto found = roles_.find(jobs.front().weight);
  return found == roles_.end() ? OpKind::kOtherProducts : found->second;
}

void MeteredBackend::embed(const Weight& table, std::span<const TokenId> ids, float scale, Matrix out) {
  const Timed timed(*this, OpKind::kEmbedding);
  backend_->embed(table, ids, scale, out);
  if (timed) timed.cost().bytes += static_cast<double>(static_cast<std::int64_t>(ids.size()) * table.view.bytes_per_row());
}

void MeteredBackend::linear(std::span<const LinearJob> jobs) {
  const Timed timed(*this, kind_of(jobs));
  backend_->linear(jobs);
  if (!timed) return;
  for (const LinearJob& job : jobs) {
    timed.cost().bytes += static_cast<double>(job.weight->view.bytes.size());
    const Operand operand = operand_of(job.weight->view.type);
    const std::int64_t rounded = operand == Operand::kQuantised && phases_differ() ? job.prompt_rows : 0,
                       each = job.weight->in() * job.weight->out();
    count(timed.cost(), operand, (job.x.rows - rounded) * each);
    count(timed.cost(), Operand::kBF16, rounded * each);
  }
}

void MeteredBackend::norm(ConstMatrix x, const NormParams& params, Matrix out) {
  const Timed timed(*this, OpKind::kNorm);
  backend_->norm(x, params, out);
}

void MeteredBackend::rope(Matrix x, std::int32_t heads, std::int32_t offset, ConstMatrix table, bool pairs) {
  const Timed timed(*this, OpKind::kRope);
  backend_->rope(x, heads, offset, table, pairs);
}

void MeteredBackend::store_kv(ConstMatrix keys, ConstMatrix values, std::span<const SequenceSlice> slices, const KvLayer& layer) {
  const Timed timed(*this, OpKind::kStoreKv);
  backend_->store_kv(keys, values, slices, layer);
}

void MeteredBackend::attention(ConstMatrix q, std::span<const SequenceSlice> slices, const KvLayer& layer, const AttentionParams& params,
                               Matrix out) {
  const Timed timed(*this, OpKind::kAttention);
  backend_->attention(q, slices, layer, params, out);
  if (!timed) return;
  const std::int64_t row = row_bytes(layer.type, layer.key_dim) + (layer.values ? row_bytes(layer.type, layer.value_dim) : 0);
  // Q8_0 is multiplied as what it is unpacked to.
  const Operand operand = layer.type == DType::kQ8_0 ? Operand::kBF16 : operand_of(layer.type);
  for (const SequenceSlice& slice : slices) {
    timed.cost().bytes += static_cast<double>(positions_read(slice, params) * layer.kv_heads * row);
    count(timed.cost(), operand, seen_by_rows(slice, params) * params.heads * (layer.key_dim + layer.value_dim));
  }
}

void MeteredBackend::route(ConstMatrix logits, const RouterParams& params, std::span<std::int32_t> ids, std::span<float> weights) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->route(logits, params, ids, weights);
}

void MeteredBackend::gather_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix out) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->gather_rows(x, rows, out);
}

void MeteredBackend::combine_rows(ConstMatrix x, std::span<const std::int32_t> rows, std::span<const float> weights, std::int32_t top_k,
                                  bool accumulate, Matrix out) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->combine_rows(x, rows, weights, top_k, accumulate, out);
}

void MeteredBackend::copy_columns(ConstMatrix x, const ColumnPieces& pieces, Matrix out) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->copy_columns(x, pieces, out);
}

void MeteredBackend::activate(Activation kind, ConstMatrix x, Matrix out) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->activate(kind, x, out);
}

void MeteredBackend::activate_mul(Activation kind, ConstMatrix gate, ConstMatrix up, Matrix out) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->activate_mul(kind, gate, up, out);
}

void MeteredBackend::clamped_swiglu(ConstMatrix gate, ConstMatrix up, float alpha, float limit, Matrix out) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->clamped_swiglu(gate, up, alpha, limit, out);
}

void MeteredBackend::add(ConstMatrix x, float scale, Matrix out) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->add(x, scale, out);
}

void MeteredBackend::multiply(ConstMatrix x, Matrix out) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->multiply(x, out);
}

void MeteredBackend::scale(float factor, float softcap, Matrix x) {
  const Timed timed(*this, OpKind::kActivation);
  backend_->scale(factor, softcap, x);
}

void MeteredBackend::causal_conv(ConstMatrix x, const ConvParams& params, std::span<const SequenceSlice> slices, const StateLayer& state,
                                 Matrix out) {
  const Timed timed(*this, OpKind::kRecurrent);
  backend_->causal_conv(x, params, slices, state, out);
  if (!timed) return;
  count_state(timed.cost(), slices, (params.taps - 1) * x.cols);
  count(timed.cost(), Operand::kF32, x.rows * x.cols * params.taps);
}

// A step of a head updates its matrix (two multiply-adds an element) and reads it once.
void MeteredBackend::ssd_scan(ConstMatrix x, ConstMatrix b, ConstMatrix c, ConstMatrix dt, const SsdParams& params,
                              std::span<const SequenceSlice> slices, const StateLayer& state, std::int64_t state_offset, Matrix out) {
  const Timed timed(*this, OpKind::kRecurrent);
  backend_->ssd_scan(x, b, c, dt, params, slices, state, state_offset, out);
  if (!timed) return;
  const std::int64_t floats = std::int64_t{params.heads} * params.head_dim * params.state;
  count_state(timed.cost(), slices, floats);
  count(timed.cost(), Operand::kF32, 3 * x.rows * floats);
}

// Here a step also reads what the matrix says of the key before it changes it.
void MeteredBackend::delta_scan(ConstMatrix q, ConstMatrix k, ConstMatrix v, ConstMatrix alpha, ConstMatrix beta, const DeltaParams& params,
                                std::span<const SequenceSlice> slices, const StateLayer& state, std::int64_t state_offset, Matrix out) {
  const Timed timed(*this, OpKind::kRecurrent);
  backend_->delta_scan(q, k, v, alpha, beta, params, slices, state, state_offset, out);
  if (!timed) return;
  const std::int64_t floats = std::int64_t{params.value_heads} * params.key_dim * params.value_dim;
  count_state(timed.cost(), slices, floats);
  count(timed.cost(), Operand::kF32, 4 * v.rows * floats);
}

}  // namespace weir::engine
