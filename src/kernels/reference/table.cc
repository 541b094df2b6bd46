// SPDX-License-Identifier: Apache-2.0
// The table of plain C++ kernels: runs everywhere, and is what every other table is tested against.
#include "kernels/reference/kernels.h"

namespace weir::kernels {

const KernelTable& reference_table() {
  static const KernelTable kTable{
      .name = "reference",
      .widen = reference::widen,
      .narrow = reference::narrow,
      .plain = {.pack = reference::pack_plain,
                .widen = reference::widen_plain,
                .tile = reference::plain_tile,
                .bf16_tile = nullptr,
                .round = nullptr},
      .write_dots = reference::write_dots,
      .quantize_row = reference::quantize_row,
      .unpack_panel = reference::unpack_panel,
      .expand_panels = reference::expand_panels,
      .panel_tile = reference::panel_tile,
      .residual_tile = reference::residual_tile,
      .packed_tile = reference::packed_tile,
      .packed_residuals = reference::packed_residuals,
      .most_packed_rows = 0,
      .most_packed_rows_of_k = 0,
      .widen_panel = reference::widen_panel,
      .wide_tile = reference::wide_tile,
      .rms_norm = reference::rms_norm,
      .layer_norm = reference::layer_norm,
      .activate = reference::activate,
      .clamped_swiglu = reference::clamped_swiglu,
      .add = reference::add,
      .multiply = reference::multiply,
      .scale = reference::scale,
      .rope = reference::rope,
      .attention = reference::attention(),
      .conv_row = reference::conv_row,
      .ssd_step = reference::ssd_step,
      .delta_step = reference::delta_step,
  };
  return kTable;
}

}  // namespace weir::kernels
