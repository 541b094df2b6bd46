// SPDX-License-Identifier: Apache-2.0
// The amx table is the avx512 one with products on tiles: int8 to the same bits, bf16 in the tiles' own order of sums. Rows of prompts
// take quantised weights rounded to bf16: the sums of int8 would leave the tiles for their scales after every 32 inputs. Attention with
// keys and values in bf16 is on tiles for all rows.
#pragma once

#include "kernels/kernel_table.h"

namespace weir::kernels::amx {

void add_round_panel(KernelTable& table);  // round_panel.cc
void add_attention(KernelTable& table);    // attention.cc, on top of avx512::add_attention_bf16
void add_products(KernelTable& table);     // products.cc
// The same code on tiles in memory, for tests.
void add_emulated_attention(KernelTable& table);
void add_emulated_products(KernelTable& table);

}  // namespace weir::kernels::amx
