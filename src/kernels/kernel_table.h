// SPDX-License-Identifier: Apache-2.0
// One table of functions per instruction set, chosen once. Functions work on a row or a small tile and know nothing of
// threads, batches or paging: cpu_*.cc cut the work. Each computes a row of its result in an order that does not depend on
// how many rows the tile has (design invariant 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/attention_kernels.h"
#include "kernels/backend.h"
#include "kernels/plain_panels.h"
#include "kernels/reference/unpack.h"

namespace weir::kernels {

struct PackedShape;  // packed_panels.h

inline constexpr int kPanelOuts = 16;  // outputs computed side by side, one per lane

// What tiles computed, into the output: out[r][o] = dots[o / kPanelOuts · dots_stride + r · kPanelOuts + o % kPanelOuts] + bias[o], or
// out += that.
struct DotsTile {
  const float* dots;
  const float* bias;  // null = zeros
  bool accumulate;
  int outs;
  std::int64_t rows;
  float* out;
  std::int64_t out_stride;
  std::int64_t dots_stride = 0;  // from panel to panel
  bool past_caches = false;      // whole lines of out may go straight to memory
};

// Activations as int8: per block of 32, scale = largest magnitude / 127, rounded to nearest even. Row r starts at r · k (q),
// r · k/32 (scale …) or r · k/16. The sums save the kernels from summing again for zero points and offsets.
inline constexpr float kSmallestBlock = 1e-30f;  // a block whose magnitudes are all below it counts as zeros

struct QuantizedRows {
  std::int64_t inputs = 0;  // of a row: a multiple of 32
  std::int64_t k = 0;       // from row to row: no less, a multiple of 32
  std::int8_t* q = nullptr;
  float* scale = nullptr;               // [k/32]
  float* scaled_sum32 = nullptr;        // [k/32]: scale · sum of the block
  float* scaled_sum16 = nullptr;        // [k/16]: scale · sum of the half block
  std::int32_t* minus_sum32 = nullptr;  // [k/32]: negative, as zero points want them
  std::int32_t* minus_sum16 = nullptr;  // [k/16]
  bool halves = true;                   // whether the sums of half blocks are read: by types with groups of 16
};

// A piece of kPanelOuts rows of a quantised weight, unpacked: outputs are lanes, four consecutive inputs of an output are
// neighbours (what the int8 dot product instructions eat).
inline constexpr int kMostPanelInputs = 640;

struct Panel {
  QuantTraits traits;
  int k = 0;                  // inputs held: a multiple of 32, up to kMostPanelInputs
  std::uint8_t* q = nullptr;  // [k/4][kPanelOuts][4]
  float* scale = nullptr;     // [k/group][kPanelOuts]
  float* offset = nullptr;    // the same, when the type has offsets
};

// Panels of neighbouring outputs that a tile takes together, so that a row's activations are read once for all of them.
inline constexpr int kPanelsTogether = 2;

// Where a tile's sums will be written: row after row, the panels of a row side by side. Tiles bring that memory nearer on the way.
struct Destination {
  const float* rows = nullptr;
  std::int64_t stride = 0;
};

struct PanelTile {
  const Panel* panels;  // [count]: of one type and one k
  int count;            // 1 to kPanelsTogether
  const QuantizedRows* x;
  std::int64_t first_row;
  int rows;
  std::int64_t k_begin;  // where in x the panels' inputs start
  float* acc;            // continues: acc[p · acc_stride + r · kPanelOuts + o]
  std::int64_t acc_stride;
  const std::byte* ahead = nullptr;  // what will be expanded next: brought to the second-level cache on the way
  std::int64_t ahead_bytes = 0;
  Destination out = {};
};

// One more block of 32 activations for some rows: what int8 lost of an outlier block.
struct ResidualBlock {
  std::int32_t row;    // of acc
  std::int32_t block;  // which block of 32 inputs, of all of the row's
  std::int64_t entry;  // which row of the residuals (k = 32)
};

struct ResidualTile {
  const Panel* panels;
  int count;
  const QuantizedRows* residuals;
  std::int64_t first_block;               // where the panels' inputs start
  std::span<const ResidualBlock> blocks;  // added in this order, all among the panels' inputs
  float* acc;                             // as in PanelTile
  std::int64_t acc_stride;
};

// The panels of a packed stripe (packed_panels.h), from input k_begin on: a multiple of the type's block size.
struct PackedPanels {
  DType type;
  const PackedShape* shape;
  const std::byte* packed;
  int count;  // 1 to kPanelsTogether
  std::int64_t k_begin;
};

// Rows times `k` inputs of both panels of a packed stripe: what expand_panels and panel_tile give, without the detour.
struct PackedTile {
  PackedPanels panels;
  int k;
  const QuantizedRows* x;
  std::int64_t first_row;
  int rows;
  float* acc;  // as in PanelTile
  std::int64_t acc_stride;
  std::int64_t ahead_bytes = 0;  // that follow these inputs: brought nearer on the way
  Destination out = {};
  std::int64_t row_ahead_bytes = 0;  // KernelTable's
};

struct PackedResiduals {
  PackedPanels panels;
  const QuantizedRows* residuals;
  std::span<const ResidualBlock> blocks;
  float* acc;
  std::int64_t acc_stride;
};

struct NormRow {
  const float* x;
  const float* weight;  // null = ones
  const float* bias;    // null = zeros
  float* out;           // may be x
  std::int64_t n;
  float epsilon;
};

struct ConvRow {  // one input row of a causal convolution; `history` holds taps-1 earlier inputs, oldest first
  const float* x;
  float* history;
  std::int64_t history_stride;
  std::int64_t begin, end;  // channels
  float* out;
};

struct DeltaStep {  // one head, one row of the gated delta rule; state [key_dim][value_dim]
  const float* q;   // normalised and scaled
  const float* k;   // normalised
  const float* v;
  float decay;  // exp(g)
  float beta;
  std::int64_t key_dim, value_dim;
  float* state;
  float* scratch;  // [value_dim]
  float* out;
};

struct SsdStep {  // one head, one row of the state space scan; state [head_dim][state]
  const float* x;
  const float* b;
  const float* c;
  float decay;  // exp(dt · A)
  float dt;
  float d;
  std::int64_t head_dim, n;
  float* state;
  float* out;
};

struct KernelTable {
  const char* name;

  // Weights and linear layers.
  void (*widen)(DType type, const std::byte* row, std::int64_t n, float* out);  // any weight type to float
  void (*narrow)(DType type, const float* x, std::int64_t n, std::byte* out);   // to F32, F16 or BF16
  PlainKernels plain;                                                           // F32, F16 and BF16 weights
  void (*write_dots)(const DotsTile& tile);
  void (*quantize_row)(const float* x, std::int64_t row, const QuantizedRows& out);
  // Fills the panel from `outs` rows (the last one repeated up to kPanelOuts), inputs [k_begin, k_begin + panel.k); both are
  // multiples of the type's block size.
  void (*unpack_panel)(DType type, const std::byte* w, std::int64_t w_stride, int outs, std::int64_t k_begin, const Panel& panel);
  // The same for panels of a packed stripe, panels[0].k inputs each.
  void (*expand_panels)(const PackedPanels& from, const Panel* panels);
  // Continue acc over the panels' inputs.
  void (*panel_tile)(const PanelTile& tile);
  void (*residual_tile)(const ResidualTile& tile);
  void (*packed_tile)(const PackedTile& tile);
  void (*packed_residuals)(const PackedResiduals& tile);
  // Up to so many rows packed_tile is as fast as expand_panels and panel_tile; 0: it never is. K-quants have scales of scales, which cost
  // more to unpack.
  int most_packed_rows, most_packed_rows_of_k;

  // Outputs of a block of rows that are larger go straight to memory: they would not stay in the nearer caches, but drive activations
  // from there. 0: none do.
  std::int64_t most_cached_output = 0;

  // A single row asks for the weights that lie so far ahead; 0: it does not (CpuFeatures).
  std::int64_t row_ahead_bytes = 0;

  // The panel's weights rounded to bf16, to nearest even, as plain_panels.h has them: [k/2][kPanelOuts][2]. Null: the table gains
  // nothing by products in bf16 with quantised weights. Only with plain.bf16_tile.
  void (*round_panel)(const Panel& panel, std::uint16_t* out) = nullptr;
  // The same for `k` inputs of the panels of a packed stripe: what expand_panels and round_panel give, without the detour.
  void (*round_packed)(const PackedPanels& from, int k, std::uint16_t* const* out) = nullptr;

  // The panel's weights as floats, [k][kPanelOuts].
  void (*widen_panel)(const Panel& panel, float* wide);
  // acc[r][k % 4][o] += x[r][k] · wide[k][o] over the k inputs, in order; x rows are x_stride floats apart.
  void (*wide_tile)(const float* wide, std::int64_t k, const float* x, std::int64_t x_stride, int rows, float* acc);

  // Element by element, and whole rows.
  void (*rms_norm)(const NormRow& row);
  void (*layer_norm)(const NormRow& row);
  void (*activate)(Activation kind, const float* x, const float* factor, std::int64_t n, float* out);  // factor may be null
  void (*clamped_swiglu)(const float* gate, const float* up, float alpha, float limit, std::int64_t n, float* out);
  void (*add)(const float* x, float scale, std::int64_t n, float* out);
  void (*multiply)(const float* x, std::int64_t n, float* out);
  void (*scale)(float factor, float softcap, std::int64_t n, float* x);
  void (*rope)(float* x, const float* cosines, const float* sines, std::int64_t half, bool pairs);

  AttentionKernels attention;

  // Recurrent layers.
  void (*conv_row)(const ConvRow& row, const ConvParams& params);
  void (*ssd_step)(const SsdStep& step);
  void (*delta_step)(const DeltaStep& step);
};

const KernelTable& reference_table();
const KernelTable* avx2_table();         // null when built for another architecture
const KernelTable* avx512_table();       // the same
const KernelTable* avx512_bf16_table();  // the same
const KernelTable* amx_table();          // the same
// The twins of tables that few machines run, on emulated instructions; for tests.
const KernelTable* amx_emulated_table();        // on a machine that runs avx512_bf16 and has avx512_vbmi
const KernelTable* avx2_vnni_table();           // null when built for another architecture
const KernelTable* avx2_vnni_emulated_table();  // on a machine that runs avx2

}  // namespace weir::kernels
