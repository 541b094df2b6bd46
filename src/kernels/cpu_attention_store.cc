// SPDX-License-Identifier: Apache-2.0
// Writing keys and values to the cache: into tiles (KvLayer) or as rows. A task is the rows that share a tile of one head, so
// that threads do not write the same lines.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu_attention_tiles.h"
#include "kernels/cpu_backend_impl.h"
#include "kernels/reference/half.h"
#include "tensor/block_formats.h"

namespace weir::kernels {
namespace {

// Blocks of 32 with the scale that lets the largest magnitude be 127.
void narrow_q8_0(const float* x, std::int64_t n, std::byte* out) {
  for (std::int64_t i = 0; i < n; i += 32, out += 34) {
    float most = 0;
    for (int j = 0; j < 32; ++j) most = std::max(most, std::abs(x[i + j]));
    const std::uint16_t bits = float_to_f16(most / 127);
    const float scale = f16_to_float(bits), inverse = scale > 0 ? 1 / scale : 0;
    std::memcpy(out, &bits, sizeof bits);
    for (int j = 0; j < 32; ++j) {
      const float level = std::nearbyint(x[i + j] * inverse);
      // Written so that what is not a number becomes one.
      out[2 + j] = static_cast<std::byte>(static_cast<std::int8_t>(level > -127 ? (level < 127 ? level : 127) : -127));
    }
  }
}

template <class Unit>
void scatter(const std::byte* from, std::int64_t count, std::byte* to, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * stride, from + i * sizeof(Unit), sizeof(Unit));
}

// One position's key into its tile: words side by side with those of its neighbours.
void put_key(DType type, const std::byte* key, std::int64_t dim, std::byte* tile, std::int64_t position) {
  if (type == DType::kF16) return scatter<std::uint16_t>(key, dim, tile + 2 * position, 2 * kKvTile);
  scatter<std::uint32_t>(key, type == DType::kBF16 ? dim / 2 : dim, tile + 4 * position, 4 * kKvTile);
}
void put_value(DType type, const std::byte* value, std::int64_t dim, std::byte* tile, std::int64_t position) {
  if (type == DType::kBF16) return scatter<std::uint16_t>(value, dim, tile + position / 2 * dim * 4 + position % 2 * 2, 4);
  std::memcpy(tile + position * row_bytes(type, dim), value, static_cast<std::size_t>(row_bytes(type, dim)));
}

class KvWriter {
 public:
  KvWriter(const KernelTable& table, const KvLayer& layer) : table_(table), layer_(layer), tiled_(holds_tiles(layer)) {}

  // The slice's rows whose positions lie in [tile · kKvTile, …), of one head. `room` is for one row of floats.
  void write_tile(ConstMatrix keys, ConstMatrix values, const SequenceSlice& slice, std::int64_t tile, std::int64_t head,
                  std::byte* room) const {
    const std::int64_t first = slice.first_position, end = std::min(first + slice.row_count, (tile + 1) * kKvTile);
    for (std::int64_t p = std::max(first, tile * kKvTile); p < end; ++p) {
      const std::int64_t row = slice.first_row + p - first, token = p % layer_.block_tokens;
      const std::int64_t block = slice.blocks[static_cast<std::size_t>(p / layer_.block_tokens)].value;
      write(keys.row(row) + head * layer_.key_dim, layer_.key_dim, put_key, block_keys(layer_, block, head), token, room);
      if (layer_.values)
        write(values.row(row) + head * layer_.value_dim, layer_.value_dim, put_value, block_values(layer_, block, head), token, room);
    }
  }

 private:
  template <class Put>
  void write(const float* x, std::int64_t dim, Put put, std::byte* start, std::int64_t token, std::byte* room) const {
    const std::int64_t bytes = row_bytes(layer_.type, dim);
    if (!tiled_) return narrow(x, dim, start + token * bytes);
    narrow(x, dim, room);
    put(layer_.type, room, dim, start + token / kKvTile * kKvTile * bytes, token % kKvTile);
  }
  void narrow(const float* x, std::int64_t dim, std::byte* out) const {
    layer_.type == DType::kQ8_0 ? narrow_q8_0(x, dim, out) : table_.narrow(layer_.type, x, dim, out);
  }
  const KernelTable& table_;
  const KvLayer& layer_;
  bool tiled_;
};

struct TileOfSlice {
  const SequenceSlice* slice;
  std::int64_t tile;
};

}  // namespace

void CpuBackend::store_kv(ConstMatrix keys, ConstMatrix values, std::span<const SequenceSlice> slices, const KvLayer& layer) {
  WEIR_CHECK(keys.cols == std::int64_t{layer.kv_heads} * layer.key_dim, "keys of {} columns", keys.cols);
  WEIR_CHECK(!layer.values || (values.cols == std::int64_t{layer.kv_heads} * layer.value_dim && values.rows == keys.rows),
             "values of {} columns", values.cols);
  WEIR_CHECK(layer.type != DType::kQ8_0 || (layer.key_dim % 32 == 0 && layer.value_dim % 32 == 0), "keys of {} as Q8_0", layer.key_dim);
  const KvWriter writer(table_, layer);
  shared_.reset();
  std::int64_t count = 0;
  const auto each_tile = [&](auto emit) {
    for (const SequenceSlice& slice : slices) {
      for (std::int64_t tile = slice.first_position / kKvTile; tile * kKvTile < std::int64_t{slice.first_position} + slice.row_count;
           ++tile)
        emit(slice, tile);
    }
  };
  for (const SequenceSlice& slice : slices) {
    WEIR_CHECK(slice.first_row >= 0 && slice.first_row + slice.row_count <= keys.rows && slice.first_position >= 0);
    WEIR_CHECK(static_cast<std::int64_t>(slice.blocks.size()) * layer.block_tokens >= std::int64_t{slice.first_position} + slice.row_count);
  }
  each_tile([&](const SequenceSlice&, std::int64_t) { ++count; });
  auto* tiles = shared_.take<TileOfSlice>(count);
  count = 0;
  each_tile([&](const SequenceSlice& slice, std::int64_t tile) { tiles[count++] = {&slice, tile}; });

  const std::int64_t most = row_bytes(DType::kF32, std::max(layer.key_dim, layer.value_dim));
  const std::int64_t elements = keys.rows * (keys.cols + values.cols), tasks = count * layer.kv_heads;
  for_tasks(tasks, elements / std::max<std::int64_t>(tasks, 1), [&](std::int64_t task, Scratch& scratch) {
    const TileOfSlice& at = tiles[task / layer.kv_heads];
    writer.write_tile(keys, values, *at.slice, at.tile, task % layer.kv_heads, scratch.take<std::byte>(most));
  });
}

}  // namespace weir::kernels
