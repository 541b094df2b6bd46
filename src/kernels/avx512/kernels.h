// SPDX-License-Identifier: Apache-2.0
// The parts of the avx512 table: each function sets the pointers of its group of kernels.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/reference/kernels.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512 {

void add_panels(KernelTable& table);          // panel.cc: int8 products
void add_packed(KernelTable& table);          // packed.cc: the same for few rows
void add_quantize(KernelTable& table);        // quantize.cc: activations to int8
void add_float(KernelTable& table);           // float.cc: products in float, conversions
void add_plain(KernelTable& table);           // plain.cc: products with F32, F16 and BF16 weights
void add_bf16(KernelTable& table);            // bf16.cc: the same with bf16 dot products, where the processor has them
void add_rows(KernelTable& table);            // rows.cc: norms, activations, recurrent layers
void add_attention(KernelTable& table);       // attention.cc
void add_attention_bf16(KernelTable& table);  // attention_bf16.cc: with bf16 dot products, where the processor has them

}  // namespace weir::kernels::avx512
