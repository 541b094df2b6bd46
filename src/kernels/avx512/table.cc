// SPDX-License-Identifier: Apache-2.0
// The avx512 table: the reference with every group of kernels replaced.
#include "kernels/avx512/kernels.h"
#include "kernels/cpu_features.h"

namespace weir::kernels {

#if defined(__x86_64__)
const KernelTable* avx512_table() {
  static const KernelTable kTable = [] {
    KernelTable table = reference_table();
    table.name = "avx512";
    table.row_ahead_bytes = cpu_features().row_ahead_bytes;
    avx512::add_panels(table);
    avx512::add_packed(table);
    avx512::add_float(table);
    avx512::add_quantize(table);
    avx512::add_plain(table);
    avx512::add_rows(table);
    avx512::add_attention(table);
    return table;
  }();
  return &kTable;
}

const KernelTable* avx512_bf16_table() {
  static const KernelTable kTable = [] {
    KernelTable table = *avx512_table();
    table.name = "avx512_bf16";
    avx512::add_bf16(table);
    avx512::add_attention_bf16(table);
    return table;
  }();
  return &kTable;
}
#else
const KernelTable* avx512_table() { return nullptr; }
const KernelTable* avx512_bf16_table() { return nullptr; }
#endif

}  // namespace weir::kernels
