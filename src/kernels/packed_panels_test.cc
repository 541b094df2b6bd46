// SPDX-License-Identifier: Apache-2.0
// Packed panels hold what the file holds: expanding gives the bits that unpacking gives, for every type and table.
#include "kernels/packed_panels.h"

#include <gtest/gtest.h>

#include "kernels/cpu_backend.h"
#include "kernels/reference/kernels.h"
#include "kernels/test_support.h"

namespace weir::kernels {
namespace {

using namespace test;

struct PanelBuffer {
  PanelBuffer(DType type, int k)
      : q(static_cast<std::size_t>(k * kPanelOuts), 0xAA),
        scale(static_cast<std::size_t>(k / quant_traits(type).group * kPanelOuts), -1),
        offset(scale),
        panel{.traits = quant_traits(type), .k = k, .q = q.data(), .scale = scale.data(), .offset = offset.data()} {}
  std::vector<std::uint8_t> q;
  Floats scale, offset;
  Panel panel;
};

TEST(PackedPanels, ExpandToTheBitsOfTheFile) {
  for (const DType type : kQuantized) {
    const int block = dtype_info(type).block_size, cols = block * (block == 32 ? 19 : 4);
    const PackedShape shape = packed_shape(type, cols);
    for (const std::int64_t rows : {16, 5, 37, 64}) {
      const auto bytes = random_weights(type, rows, cols, 3);
      const TensorView view{type, {rows, cols}, bytes};
      std::vector<std::byte> packed(static_cast<std::size_t>(shape.bytes), std::byte{0xEE});
      for (std::int64_t first = 0; first < rows; first += kPanelOuts) {
        const int second = static_cast<int>(first % kStripeOuts / kPanelOuts), count = second + 1;
        if (second == 0) pack_stripe(view, first, packed.data());
        const int outs = static_cast<int>(std::min<std::int64_t>(kPanelOuts, rows - first));
        for (const int begin : {0, block}) {
          PanelBuffer wanted(type, cols - begin);
          reference::unpack_panel(type, bytes.data() + first * view.bytes_per_row(), view.bytes_per_row(), outs, begin, wanted.panel);
          for (const KernelTable* table : runnable_tables()) {
            PanelBuffer found[2] = {{type, cols - begin}, {type, cols - begin}};
            const Panel panels[] = {found[0].panel, found[1].panel};
            table->expand_panels({type, &shape, packed.data(), count, begin}, panels);
            ASSERT_EQ(found[second].q, wanted.q) << dtype_name(type) << " " << table->name;
            ASSERT_TRUE(same_bits(found[second].scale, wanted.scale)) << dtype_name(type) << " " << table->name;
            if (quant_traits(type).has_offset) {
              ASSERT_TRUE(same_bits(found[second].offset, wanted.offset)) << dtype_name(type) << " " << table->name;
            }
          }
        }
      }
    }
  }
}

TEST(PackedPanels, AreNoMoreThanATwentiethLargerThanTheFile) {
  for (const DType type : kQuantized) {
    const std::vector<std::byte> bytes(static_cast<std::size_t>(64 * row_bytes(type, 2048)));
    const TensorView view{type, {64, 2048}, bytes};
    EXPECT_LE(static_cast<double>(packed_bytes(view)), 1.05 * static_cast<double>(bytes.size())) << dtype_name(type);
  }
}

TEST(PackedPanels, OutputsPackAloneAsWithinTheWhole) {
  const auto backend = make_cpu_backend({.threads = 2}).value();
  std::vector<DType> types = kQuantized;
  types.insert(types.end(), kPlain.begin(), kPlain.end());
  for (const DType type : types) {
    constexpr std::int64_t kRows = 3 * kPackRows + 5, kCols = 512;
    const auto bytes = random_weights(type, kRows, kCols, 9);
    const Weight whole{TensorView{type, {kRows, kCols}, bytes}};
    const auto size = static_cast<std::size_t>(backend->packed_bytes(whole));
    if (size == 0) continue;
    alignas(64) static std::byte wanted[1 << 20], found[1 << 20];
    ASSERT_LE(size, sizeof wanted);
    backend->pack(whole, {wanted, size});
    std::size_t at = 0;
    for (const auto& [begin, end] : {std::pair{std::int64_t{0}, 2 * kPackRows}, {2 * kPackRows, kRows}}) {
      const Weight slice{whole.view.row_slice(begin, end - begin)};
      const auto part = static_cast<std::size_t>(backend->packed_bytes(slice));
      backend->pack(slice, {found + at, part});
      at += part;
    }
    ASSERT_EQ(at, size) << dtype_name(type);
    EXPECT_EQ(std::memcmp(found, wanted, size), 0) << dtype_name(type);
  }
}

}  // namespace
}  // namespace weir::kernels
