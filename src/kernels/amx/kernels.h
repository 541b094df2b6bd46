// SPDX-License-Identifier: Apache-2.0
// The amx table is the avx512 one with products on tiles: int8 to the same bits, bf16 in the tiles' own order of sums.
#pragma once

#include "kernels/kernel_table.h"

namespace weir::kernels::amx {

void add_products(KernelTable& table);           // products.cc
void add_emulated_products(KernelTable& table);  // emulated_products.cc: the same code on tiles in memory, for tests

}  // namespace weir::kernels::amx
