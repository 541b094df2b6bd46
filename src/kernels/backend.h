// SPDX-License-Identifier: Apache-2.0
// The seam between the model and what computes it: about a dozen operations on f32 activations and weights as they lie
// in the file. CpuBackend is the first implementation; other instruction sets are tables beneath it, other devices are
// siblings of it.
//
// Contract for all operations (design invariant 1): each row of a result depends on the matching row of the inputs (and
// the KV blocks or state of that row's sequence) alone, and is computed in an order fixed by the shapes, whatever the
// number of rows or threads. Shapes are checked with WEIR_CHECK: the model has validated its file before.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "kernels/matrix.h"
#include "tensor/view.h"

namespace weir::kernels {

enum class WeightLayout {
  kOutIn,  // view.shape = [out, in]: a row holds the inputs of one output; any type
  kInOut,  // view.shape = [in, out]: the transpose, as GPT-2's Conv1D stores it; F32, F16, BF16 only
};

// The weight of a linear layer. The bytes stay where the file is mapped.
struct Weight {
  TensorView view;
  WeightLayout layout = WeightLayout::kOutIn;
  const std::byte* packed = nullptr;  // the same weight as Backend::pack() wrote it, or null
  std::int64_t out() const { return layout == WeightLayout::kOutIn ? view.dim(0) : view.dim(1); }
  std::int64_t in() const { return layout == WeightLayout::kOutIn ? view.dim(1) : view.dim(0); }
};

enum class NormKind { kRms, kLayer };

struct NormParams {
  NormKind kind = NormKind::kRms;
  float epsilon = 1e-5f;
  std::int64_t group = 0;         // elements normalised together; 0 = the whole row. cols % group == 0
  const float* weight = nullptr;  // null = ones
  const float* bias = nullptr;    // null = zeros
  bool shared = true;             // weight and bias have `group` entries used by each group; else `cols` entries
};

enum class Activation { kSilu, kGeluTanh, kGeluErf, kRelu, kReluSquared, kSigmoid };

// What becomes of each row of x on its way into a product, so that the model needs no pass of its own for it.
struct InputStep {
  enum class Kind { kNorm, kActivation } kind = Kind::kNorm;
  NormParams norm;  // kNorm: x := norm(x)
  Activation activation = Activation::kSilu;
  ConstMatrix factor;  // kActivation: x := f(x) · factor, or f(x) when it is empty
};

// out = x · Wᵀ + bias, or out += when `accumulate`. Jobs of one call may share x (it is quantised once) and run together.
struct LinearJob {
  ConstMatrix x;  // [rows, in]
  const Weight* weight = nullptr;
  const float* bias = nullptr;  // [out] or null
  Matrix out;                   // [rows, out]
  bool accumulate = false;
  const InputStep* input = nullptr;  // jobs that share x name the same one
  std::int64_t prompt_rows = 0;      // the last so many rows are positions of prompts, for Backend::phases_differ()
};

// Consecutive rows of one sequence in a batch.
struct SequenceSlice {
  std::int32_t first_row = 0;
  std::int32_t row_count = 0;
  std::int32_t first_position = 0;  // position of the first row in its sequence
  std::int32_t rope_length = 0;     // length that picks between short and long rope factors; 0 = end of this slice
  std::span<const BlockId> blocks;  // block i holds positions [i·block_tokens, (i+1)·block_tokens)
  StateSlot state;                  // recurrent layers' state; invalid when the model has none
  bool prompt = false;              // positions of a prompt: the phase that may have an arithmetic of its own
};

// One layer's part of the KV cache. A head of a block has the bytes of block_tokens rows of key_dim (value_dim) elements. They lie
// as such rows or, when blocks are whole tiles of sixteen tokens and the type is not quantised, tile after tile in the order in
// which attention reads them: keys [key_dim][16], values [16][value_dim]; BF16 in pairs, keys [key_dim/2][16][2] (key_dim even,
// else rows), values [8][value_dim][2].
struct KvLayer {
  DType type = DType::kF32;  // F32, F16, BF16, or Q8_0 (dimensions are multiples of 32 then)
  std::byte* keys = nullptr;
  std::byte* values = nullptr;  // null when values are a prefix of the keys (MLA)
  std::int32_t block_tokens = 0;
  std::int32_t kv_heads = 0;
  std::int32_t key_dim = 0;
  std::int32_t value_dim = 0;
  std::int64_t block_stride = 0;  // bytes from a block's keys (values) to the next block's; 0: blocks follow each other
};

struct AttentionParams {
  std::int32_t heads = 0;  // query heads; head h reads KV head h / (heads / kv_heads)
  float scale = 1;
  float softcap = 0;             // > 0: softcap · tanh(score / softcap)
  std::int32_t window = 0;       // > 0: position i sees i-window+1 … i; not causal: to i+window-1
  const float* sinks = nullptr;  // [heads]: one more logit per head that takes weight but has no value
  bool causal = true;            // false: each row sees all of its slice (encoders; the slice is the whole sequence)
};

enum class RouterScore { kSoftmax, kSoftmaxOfTop, kSigmoid };
enum class GroupScore { kMax, kTopTwoSum };

struct RouterParams {
  std::int32_t top_k = 1;
  RouterScore score = RouterScore::kSoftmax;  // softmax over all experts; over the chosen ones only; or sigmoid of each
  const float* correction = nullptr;          // [experts]: added to the scores for choosing, not for weighing
  std::int32_t groups = 1;                    // experts are chosen from the best `top_groups` of `groups` groups
  std::int32_t top_groups = 1;
  GroupScore group_score = GroupScore::kMax;
  bool renormalize = false;  // divide the chosen weights by their sum
  float scale = 1;           // applied last
};

struct ConvParams {
  const float* weight = nullptr;  // [channels, taps], the newest input last
  const float* bias = nullptr;    // [channels] or null
  std::int32_t taps = 4;
  bool silu = false;  // silu on the output
};

// State space duality scan of Mamba-2 (Dao & Gu 2024, arXiv:2405.21060): h = exp(dt·A)·h + dt·B·x, y = C·h + D·x.
struct SsdParams {
  std::int32_t heads = 0, head_dim = 0, groups = 0, state = 0;
  const float* a = nullptr;        // [heads]: A, negative (already -exp(A_log))
  const float* d = nullptr;        // [heads]
  const float* dt_bias = nullptr;  // [heads]; dt = softplus(dt + bias), clamped
  float dt_min = 0, dt_max = 1e30f;
};

// Gated delta rule (Yang et al. 2024, arXiv:2412.06464): S = exp(g)·S; S += k ⊗ (β·(v − kᵀS)); o = qᵀS.
struct DeltaParams {
  std::int32_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;  // value head h uses key head h / (value_heads / key_heads)
  const float* a = nullptr;                                                 // [value_heads]: -exp(A_log)
  const float* dt_bias = nullptr;                                           // [value_heads]; g = a · softplus(alpha + dt_bias)
  bool tiled = false;        // value head h uses key head h % key_heads instead (GGUF files of Qwen3.5)
  float l2_epsilon = 1e-6f;  // q and k are L2-normalised per head: x / sqrt(sum x² + eps); q is scaled by key_dim^-1/2
};

// `count` pieces of `width` columns: piece i goes from column x_first + i·x_step to column out_first + i·out_step.
struct ColumnPieces {
  std::int64_t count = 1, width = 0;
  std::int64_t x_first = 0, x_step = 0;
  std::int64_t out_first = 0, out_step = 0;
};

// State of one recurrent layer: slot s starts at data + s·floats_per_slot.
struct StateLayer {
  float* data = nullptr;
  std::int64_t floats_per_slot = 0;
  float* slot(StateSlot s) const { return data + s.value * floats_per_slot; }
};

inline constexpr std::int64_t kPackRows = 64;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string description() const = 0;  // "avx2, int8 activations, 2 threads"
  virtual DType kv_type() const = 0;            // the element type of the KV cache that suits it best
  // Whether rows of prompts (LinearJob::prompt_rows) are multiplied in another arithmetic than others, so that the same token at the
  // same position has other bits in the one phase than in the other.
  virtual bool phases_differ() const { return false; }

  // Runs body(i) for each i below `count`, on this backend's threads where it has some: for work between passes, as choosing tokens.
  // The bodies share nothing and do not throw.
  virtual void for_each(std::int64_t count, FunctionRef<void(std::int64_t)> body) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
  }

  // A weight in the order in which linear() reads it best. packed_bytes() is 0 when this backend gains nothing by it. Results do
  // not depend on whether Weight::packed is set. Of a kOutIn weight, outputs from a multiple of kPackRows to another one (or to
  // the last) pack alone to the bytes that they have within the whole.
  virtual std::int64_t packed_bytes(const Weight& weight) const = 0;
  virtual void pack(const Weight& weight, std::span<std::byte> out) = 0;              // packed_bytes(weight) bytes, aligned to 64
  virtual void pack_alone(const Weight& weight, std::span<std::byte> out) const = 0;  // on the caller's thread, beside any other call
  virtual std::string packed_layout() const = 0;                                      // names the layout and its version

  // out[i] = scale · row ids[i] of the table (ids are in range).
  virtual void embed(const Weight& table, std::span<const TokenId> ids, float scale, Matrix out) = 0;
  virtual void linear(std::span<const LinearJob> jobs) = 0;
  virtual void norm(ConstMatrix x, const NormParams& params, Matrix out) = 0;  // out may be x

  // Rotates columns [offset, offset + rotary_dim) of each head of x = [rows, heads·head_dim] in place. table = [rows,
  // rotary_dim]: cosines, then sines. `pairs`: rotates (2i, 2i+1); else (i, i + rotary_dim/2).
  virtual void rope(Matrix x, std::int32_t heads, std::int32_t offset, ConstMatrix table, bool pairs) = 0;

  // Writes keys [rows, kv_heads·key_dim] and values [rows, kv_heads·value_dim] (empty for MLA) of each row to its slot.
  virtual void store_kv(ConstMatrix keys, ConstMatrix values, std::span<const SequenceSlice> slices, const KvLayer& layer) = 0;
  // q = [rows, heads·key_dim] → out = [rows, heads·value_dim]; reads what store_kv wrote, this batch's rows included.
  virtual void attention(ConstMatrix q, std::span<const SequenceSlice> slices, const KvLayer& layer, const AttentionParams& params,
                         Matrix out) = 0;

  // logits = [rows, experts] → ids and weights [rows · top_k], best first; ties go to the lower expert.
  virtual void route(ConstMatrix logits, const RouterParams& params, std::span<std::int32_t> ids, std::span<float> weights) = 0;

  // Rows regrouped by expert, and back. gather_rows: out row i = x row rows[i]. combine_rows: out row r (+)= Σ over j in
  // [0, top_k), in that order, of weights[r·top_k + j] · x row rows[r·top_k + j].
  virtual void gather_rows(ConstMatrix x, std::span<const std::int32_t> rows, Matrix out) = 0;
  virtual void combine_rows(ConstMatrix x, std::span<const std::int32_t> rows, std::span<const float> weights, std::int32_t top_k,
                            bool accumulate, Matrix out) = 0;

  // Moves pieces of columns from x to out (another matrix): q, k and v of a weight fused by heads, gate and up of an interleaved one.
  virtual void copy_columns(ConstMatrix x, const ColumnPieces& pieces, Matrix out) = 0;

  virtual void activate(Activation kind, ConstMatrix x, Matrix out) = 0;                         // out = f(x)
  virtual void activate_mul(Activation kind, ConstMatrix gate, ConstMatrix up, Matrix out) = 0;  // out = f(gate) · up
  virtual void clamped_swiglu(ConstMatrix gate, ConstMatrix up, float alpha, float limit,
                              Matrix out) = 0;                    // gpt-oss: min(gate, limit) · σ(alpha·gate) · (clamp(up, ±limit) + 1)
  virtual void add(ConstMatrix x, float scale, Matrix out) = 0;   // out += scale · x
  virtual void multiply(ConstMatrix x, Matrix out) = 0;           // out *= x; x.cols is out.cols, or divides it (one factor per group)
  virtual void scale(float factor, float softcap, Matrix x) = 0;  // x *= factor, then softcap·tanh(x/softcap) when softcap > 0

  // Causal depthwise convolution along each sequence; the layer's state holds the last taps-1 inputs, oldest first
  // ([taps-1, channels] at the start of the slot).
  virtual void causal_conv(ConstMatrix x, const ConvParams& params, std::span<const SequenceSlice> slices, const StateLayer& state,
                           Matrix out) = 0;
  // x = [rows, heads·head_dim], b and c = [rows, groups·state], dt = [rows, heads]; state slot + state_offset holds
  // [heads, head_dim, state].
  virtual void ssd_scan(ConstMatrix x, ConstMatrix b, ConstMatrix c, ConstMatrix dt, const SsdParams& params,
                        std::span<const SequenceSlice> slices, const StateLayer& state, std::int64_t state_offset, Matrix out) = 0;
  // q, k = [rows, key_heads·key_dim], v = [rows, value_heads·value_dim], alpha and beta logits = [rows, value_heads] (beta =
  // σ(logit)); state slot + state_offset holds [value_heads, key_dim, value_dim].
  virtual void delta_scan(ConstMatrix q, ConstMatrix k, ConstMatrix v, ConstMatrix alpha, ConstMatrix beta, const DeltaParams& params,
                          std::span<const SequenceSlice> slices, const StateLayer& state, std::int64_t state_offset, Matrix out) = 0;
};

}  // namespace weir::kernels
