// SPDX-License-Identifier: Apache-2.0
// The experts of gpt-oss as the hub has them: [experts, in, out] with gate and up alternating, or the same outputs as rows of
// MXFP4 blocks. The halves of a block's bytes stand for other elements than in GGUF: here byte i holds elements 2i and 2i+1, there
// i and i+16 (OCP Microscaling Formats 1.0 gives the numbers, not the order). Blocks are copied when somebody needs them: weights
// whose packed form is in the cache never do.
#include "base/huge_memory.h"
#include "model/weights_loader.h"

namespace weir::model {
namespace {

constexpr std::int64_t kBlock = 32, kPacked = 16, kBlockBytes = 17;

Vector every_second(const Vector& values, std::int64_t begin, std::int64_t count) {
  Vector out(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(begin + 2 * i)];
  return out;
}

Vector slice_of(const Vector& values, std::int64_t begin, std::int64_t count) {
  return {values.begin() + begin, values.begin() + begin + count};
}

// One block of 32: the scale's exponent, then the nibbles in GGUF's order.
void repack_block(const std::byte* packed, std::byte scale, std::byte* out) {
  out[0] = scale;
  for (int i = 0; i < kPacked; ++i) {
    const auto nibble = [&](int element) { return (packed[element / 2] >> (element % 2 ? 4 : 0)) & std::byte{0x0f}; };
    out[1 + i] = nibble(i) | (nibble(i + kPacked) << 4);
  }
}

struct Blocks {
  TensorView packed, scales;  // [experts, rows, blocks, 16] and [experts, rows, blocks]
  std::int64_t rows = 0, blocks = 0;

  // Row `row` of expert `e` in GGUF's layout.
  void copy_row(std::int64_t e, std::int64_t row, std::byte* out) const {
    const std::int64_t first = (e * rows + row) * blocks;
    for (std::int64_t b = 0; b < blocks; ++b)
      repack_block(packed.bytes.data() + (first + b) * kPacked, scales.bytes[static_cast<std::size_t>(first + b)], out + b * kBlockBytes);
  }
};

Result<Blocks> take_blocks(TensorSource& source, const std::string& base, std::int64_t experts, std::int64_t rows, std::int64_t cols) {
  if (cols % kBlock) return fail(ErrorCode::kCorrupt, "tensor {}_blocks: {} inputs in blocks of {}", base, cols, kBlock);
  Blocks out;
  out.rows = rows;
  out.blocks = cols / kBlock;
  WEIR_ASSIGN(out.packed, source.raw(base + "_blocks", {experts, rows, out.blocks, kPacked}));
  WEIR_ASSIGN(out.scales, source.raw(base + "_scales", {experts, rows, out.blocks}));
  for (const TensorView* view : {&out.packed, &out.scales})
    if (view->type != DType::kU8)
      return fail(ErrorCode::kCorrupt, "tensor {}: blocks of type {}, expected U8", base, dtype_name(view->type));
  return out;
}

}  // namespace

Status WeightReader::mxfp4_experts(const std::string& prefix, ExpertWeights& out) {
  const std::int64_t count = plan_.traits.experts.experts, inner = plan_.expert_size, hidden = plan_.traits.hidden;
  const std::string gate_up = prefix + plan_.names.stacked_gate_up, down = prefix + plan_.names.stacked_down;
  WEIR_ASSIGN(Blocks both, take_blocks(source_, gate_up, count, 2 * inner, hidden));
  WEIR_ASSIGN(Blocks last, take_blocks(source_, down, count, hidden, inner));
  plan_.traits.experts.gate_up = GateUpLayout::kSeparate;
  const auto bytes_of = [](const Blocks& from, std::int64_t rows) { return static_cast<std::size_t>(rows * from.blocks * kBlockBytes); };
  const std::size_t each = 2 * bytes_of(both, inner) + bytes_of(last, hidden);
  const HugeMemory memory = allocate_huge(each * static_cast<std::size_t>(count));  // takes memory where it is written
  if (!memory) return fail(ErrorCode::kExhausted, "no memory for the experts of {}", prefix);
  weights_.owners.push_back(memory.owner);
  std::size_t used = 0;
  // `stride` rows apart, so that gates and ups become two weights.
  const auto copy = [&](const Blocks& from, std::int64_t e, std::int64_t first, std::int64_t stride, std::int64_t rows) {
    const std::span<std::byte> bytes = memory.bytes.subspan(used, bytes_of(from, rows));
    used += bytes.size();
    weights_.deferred.push_back({bytes, rows, [from, e, first, stride](std::int64_t begin, std::int64_t n, std::byte* to) {
                                   for (std::int64_t r = begin; r < begin + n; ++r, to += from.blocks * kBlockBytes)
                                     from.copy_row(e, first + stride * r, to);
                                 }});
    return kernels::Weight{TensorView{DType::kMXFP4, {rows, from.blocks * kBlock}, bytes}};
  };
  for (std::int64_t e = 0; e < count; ++e) {
    FfnWeights& expert = out.experts[static_cast<std::size_t>(e)];
    expert.gate.weight = copy(both, e, 0, 2, inner);
    expert.up.weight = copy(both, e, 1, 2, inner);
    expert.down.weight = copy(last, e, 0, 1, hidden);
  }
  return {};
}

Status WeightReader::interleaved_experts(const std::string& prefix, ExpertWeights& out) {
  const std::int64_t count = plan_.traits.experts.experts, inner = plan_.expert_size, hidden = plan_.traits.hidden;
  const std::string gate_up = prefix + plan_.names.stacked_gate_up, down = prefix + plan_.names.stacked_down;
  WEIR_ASSIGN(const Vector both_bias, source_.vector(gate_up + "_bias", count * 2 * inner));
  WEIR_ASSIGN(const Vector down_bias, source_.vector(down + "_bias", count * hidden));
  const bool packed = source_.has(gate_up + "_blocks");
  if (packed) {
    WEIR_TRY(mxfp4_experts(prefix, out));
  } else {
    WEIR_ASSIGN(TensorView both, source_.matrix(gate_up, {count, hidden, 2 * inner}));
    WEIR_ASSIGN(TensorView last, source_.matrix(down, {count, inner, hidden}));
    plan_.traits.experts.gate_up = GateUpLayout::kInterleaved;
    for (std::int64_t e = 0; e < count; ++e) {
      out.experts[static_cast<std::size_t>(e)].gate_up.weight = kernels::Weight{both.slice(e), kernels::WeightLayout::kInOut};
      out.experts[static_cast<std::size_t>(e)].down.weight = kernels::Weight{last.slice(e), kernels::WeightLayout::kInOut};
    }
  }
  for (std::int64_t e = 0; e < count; ++e) {
    FfnWeights& expert = out.experts[static_cast<std::size_t>(e)];
    const std::int64_t first = e * 2 * inner;
    expert.down.bias = slice_of(down_bias, e * hidden, hidden);
    if (packed) {
      expert.gate.bias = every_second(both_bias, first, inner);
      expert.up.bias = every_second(both_bias, first + 1, inner);
    } else {
      expert.gate_up.bias = slice_of(both_bias, first, 2 * inner);
    }
  }
  return {};
}

}  // namespace weir::model
