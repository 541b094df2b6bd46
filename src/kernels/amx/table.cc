// SPDX-License-Identifier: Apache-2.0
// The amx table, and its twin for tests.
#include "kernels/amx/kernels.h"
#include "kernels/avx512/kernels.h"

namespace weir::kernels {

#if defined(__x86_64__)
namespace {

KernelTable make_table(const char* name, void (*add_attention)(KernelTable&), void (*add_products)(KernelTable&)) {
  KernelTable table = *avx512_table();
  table.name = name;
  avx512::add_bf16(table);            // rounds activations; the product is replaced
  avx512::add_attention_bf16(table);  // packs; the step is for sizes that tiles do not take
  amx::add_round_panel(table);
  add_attention(table);
  add_products(table);
  table.most_cached_output = 4 << 20;  // of 2 MiB a core
  table.most_packed_rows_of_k = 31;    // Intel's processors unpack on the units that multiply: docs/performance.md
  return table;
}

}  // namespace

const KernelTable* amx_table() {
  static const KernelTable kTable = make_table("amx", amx::add_attention, amx::add_products);
  return &kTable;
}
const KernelTable* amx_emulated_table() {
  static const KernelTable kTable = make_table("amx_emulated", amx::add_emulated_attention, amx::add_emulated_products);
  return &kTable;
}
#else
const KernelTable* amx_table() { return nullptr; }
const KernelTable* amx_emulated_table() { return nullptr; }
#endif

}  // namespace weir::kernels
