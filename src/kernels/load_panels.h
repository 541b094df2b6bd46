// SPDX-License-Identifier: Apache-2.0
// Pieces of a quantised weight as panels of bytes and scales, whether it is packed or still as in its file.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/packed_panels.h"
#include "kernels/scratch.h"

namespace weir::kernels {

// Inputs of a panel held at once: 8 KiB of int8, in the first-level cache; up to kMostPanelInputs if they are the last.
inline constexpr std::int64_t kPanelInputs = 512;

// Inputs of the chunk that begins at `begin` of `k`: kPanelInputs; a short rest joins the last one (SmolLM2's 576 are one chunk).
inline std::int64_t chunk_at(std::int64_t k, std::int64_t begin) { return k - begin <= kMostPanelInputs ? k - begin : kPanelInputs; }

Panel take_panel(DType type, Scratch& scratch);  // room for kMostPanelInputs

// Loads the chunk from input `begin` on of `count` panels, the first of which starts with output `o`, which begins a stripe.
void load_panels(const KernelTable& table, const Weight& weight, const PackedShape& shape, std::int64_t o, std::int64_t out_end,
                 std::int64_t begin, int count, Panel* panels);

}  // namespace weir::kernels
