// SPDX-License-Identifier: Apache-2.0
// F32, F16 and BF16 weights as the kernels stream them: panels of kPanelOuts outputs, inputs one after another, so that outputs
// are lanes and a product reads its weights once, in order. A panel's inputs are padded with zeros to a multiple of 32:
//   F32   per input 16 floats
//   F16   per input 16 halves
//   BF16  per pair of inputs 16 pairs: what the bf16 dot product instructions eat; widening takes one operation either way
// Every sum runs over the inputs in order, from zero within each block of kPlainBlock inputs; the blocks' sums are added in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace weir::kernels {

enum class WeightLayout;

inline constexpr std::uint32_t kPlainLayoutVersion = 1;  // part of a cache file's key
inline constexpr std::int64_t kPlainPadding = 32;        // a panel's inputs are a multiple of it
inline constexpr std::int64_t kPlainBlock = 512;         // inputs of a tile at most: 16 KiB of bf16 a panel, in the nearer caches
inline constexpr int kPlainPanels = 4;                   // panels of a tile at most

inline bool is_plain(DType type) { return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16; }

inline std::int64_t plain_padded(std::int64_t k) { return (k + kPlainPadding - 1) / kPlainPadding * kPlainPadding; }
// Of a panel of k inputs, padding included; `k` may also be where a block of inputs starts.
inline std::int64_t plain_panel_bytes(DType type, std::int64_t k) { return plain_padded(k) * 16 * (type == DType::kF32 ? 4 : 2); }

// Up to 16 outputs of a weight as the file has it.
struct PlainSource {
  DType type;
  WeightLayout layout;
  const std::byte* w;   // of output 0 and input 0
  std::int64_t stride;  // bytes from output to output (kOutIn) or from input to input (kInOut)
  int outs;             // 1 to kPanelOuts; what a panel has beyond them is unspecified but finite if they are
  std::int64_t k;
};

// A block of inputs of neighbouring panels.
struct PanelBlock {
  DType type = DType::kF32;
  const std::byte* w = nullptr;
  std::int64_t stride = 0;  // bytes from panel to panel
  int panels = 0;           // 1 to kPlainPanels
  std::int64_t k = 0;       // 1 to kPlainBlock
  // Asked for meanwhile: as many panels that the following product reads, `next_step` bytes for each line read here. Null: nothing.
  const std::byte* next = nullptr;
  std::int64_t next_stride = 0, next_step = 0;
};

// acc[p · acc_stride + r · kPanelOuts + o] += x[r] · w[p][o] over the block's inputs.
struct PlainTile {
  PanelBlock block;
  const float* x;
  std::int64_t x_stride;
  int rows;
  float* acc;
  std::int64_t acc_stride;
};

// Lines of memory that a product asks for on its way, a few at a time: `lines` of each of some rows. Goes on from piece to piece.
struct LinesAhead {
  const std::byte* row = nullptr;
  std::int64_t stride = 0;     // bytes from row to row
  std::int64_t rows_left = 0;  // this one included; 0: nothing is asked for
  std::int64_t lines = 0, line = 0;
  std::int64_t each = 1;  // lines at a time

  void ask() {
    for (std::int64_t i = 0; i < each && rows_left > 0; ++i) {
      __builtin_prefetch(row + line * 64, 0, 2);
      if (++line < lines) continue;
      line = 0, row += stride, --rows_left;
    }
  }
};

// The same with bf16 weights and activations rounded to bf16; k is a multiple of kPlainPadding.
struct Bf16Tile {
  PanelBlock block;
  const std::uint16_t* x;
  std::int64_t x_stride;
  int rows;
  float* acc;
  std::int64_t acc_stride;
  bool fresh = false;           // acc is not read: the sums begin with this block
  LinesAhead* ahead = nullptr;  // a hint
};

// The part of a kernel table for these weights.
struct PlainKernels {
  void (*pack)(const PlainSource& source, std::byte* panel);  // plain_panel_bytes(type, k) bytes
  // A piece of a panel as one of F32: k is a multiple of kPlainPadding.
  void (*widen)(DType type, const std::byte* panel, std::int64_t k, float* wide);
  void (*tile)(const PlainTile& tile);
  // Null: the table multiplies bf16 weights with float activations only.
  void (*bf16_tile)(const Bf16Tile& tile);
  void (*round)(const float* x, std::int64_t n, std::uint16_t* out);  // to bf16, and zeros up to plain_padded(n)
};

}  // namespace weir::kernels
