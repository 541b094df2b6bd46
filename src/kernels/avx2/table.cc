// SPDX-License-Identifier: Apache-2.0
// The avx2 table: the reference with every group of kernels replaced.
#include "kernels/avx2/kernels.h"
#include "kernels/cpu_features.h"

namespace weir::kernels {

#if defined(__x86_64__)
const KernelTable* avx2_table() {
  static const KernelTable kTable = [] {
    KernelTable table = reference_table();
    table.name = "avx2";
    table.row_ahead_bytes = cpu_features().row_ahead_bytes;
    avx2::add_panels(table);
    avx2::add_float(table);
    avx2::add_plain(table);
    avx2::add_rows(table);
    avx2::add_attention(table);
    return table;
  }();
  return &kTable;
}
#else
const KernelTable* avx2_table() { return nullptr; }
#endif

}  // namespace weir::kernels
