// SPDX-License-Identifier: Apache-2.0
// The parts of the avx512 table: each function sets the pointers of its group of kernels.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/reference/kernels.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512 {

void add_panels(KernelTable& table);     // panel.cc: int8 products
void add_float(KernelTable& table);      // float.cc: products in float, conversions, quantising of activations
void add_plain(KernelTable& table);      // plain.cc: products with F32, F16 and BF16 weights
void add_rows(KernelTable& table);       // rows.cc: norms, activations, recurrent layers
void add_attention(KernelTable& table);  // attention.cc

}  // namespace weir::kernels::avx512
